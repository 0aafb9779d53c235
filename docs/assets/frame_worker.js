// Search runs in a worker, and browsers start none from file: addresses. There, a hidden frame plays its part.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = Object.assign(document.createElement("iframe"), { hidden: true })
      document.body.append(frame)
      this.inside = frame.contentWindow
      const load = (src) =>
        new Promise((resolve, reject) => {
          const script = Object.assign(this.inside.document.createElement("script"), { src, onload: resolve, onerror: reject })
          this.inside.document.body.append(script)
        })
      this.inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => load(next)), Promise.resolve())
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = load(url)
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })))
    }
  }
}
