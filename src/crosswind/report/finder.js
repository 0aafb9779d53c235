"use strict";
// Finds episodes in the page. All text goes into the page as text: no markup is ever made of it.
(() => {
  const held = document.getElementById("find-data");
  if (!held) return;
  const all = JSON.parse(held.textContent), {names, rows, outcomes} = all, size = rows.n.length;
  const opened = new Set(all.opened), at = id => document.getElementById("find-" + id), PAGE = 40;
  const REFUSE = 1, CLEAN_SIDE = 2, PAIR = 4, BROKE = 8, FIXED = 16, bit = b => i => (rows.bits[i] & b) ? "1" : "0";
  const name = field => i => names[field][rows[field][i]], kinds = i => names.kinds[rows.kinds[i]];
  const family = i => names.family[rows.family[i]], label = i => family(i)[0] + "/" + family(i)[1];
  const FIELDS = {
    outcome: i => outcomes[rows.outcome[i]], cause: name("cause"), stage: name("stage"), ended: name("ended"),
    condition: name("condition"), tool: name("tool"), error: name("error"), key: name("key"), family: label,
    domain: i => family(i)[0], level: i => String(family(i)[2]), severity: i => String(rows.severity[i] || ""),
    only: i => kinds(i)[0].length === 1 ? kinds(i)[0][0] : "", tier: i => kinds(i)[1], axis: i => kinds(i)[2],
    published: i => kinds(i)[3], clean: i => kinds(i)[0].length ? "0" : "1", refuse: bit(REFUSE),
    side: bit(CLEAN_SIDE), pair: bit(PAIR), broke: bit(BROKE), fixed: bit(FIXED),
    judged: i => rows.outcome[i] < 2 ? "1" : "0",
  };
  const SAID = {broke: ["", "passed clean, failed shifted"], fixed: ["", "failed clean, passed shifted"],
    pair: ["", "shifted, counted in the change"], side: ["", "clean, counted in the change"],
    clean: ["shifted", "clean world"], refuse: ["solvable", "to be refused"], judged: ["", "judged"]};
  const NAMED = {only: "kind alone", key: "parameter"};
  const CHOICES = ["outcome", "kind", "cause", "family"], RANK = [1, 3, 2, 4];
  let filters = {}, found = [], shown = 0, hay = null;

  const element = (what, cls, text) => {
    const made = document.createElement(what);
    if (cls) made.className = cls;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const haystack = () => hay ||= Array.from({length: size}, (_, i) => [rows.n[i], label(i) + "/" + rows.task[i],
    FIELDS.condition(i), FIELDS.cause(i), FIELDS.stage(i), FIELDS.tool(i), FIELDS.error(i), FIELDS.key(i),
    FIELDS.ended(i), name("why")(i), kinds(i)[0].join(" ")].join(" ").toLowerCase());

  function search() {
    const words = (filters.text || "").toLowerCase().split(/\s+/).filter(Boolean), tests = [];
    for (const [field, wanted] of Object.entries(filters)) {
      if (field === "kind") tests.push(i => kinds(i)[0].includes(wanted));
      else if (FIELDS[field]) tests.push(i => FIELDS[field](i) === wanted);
    }
    const text = words.length ? haystack() : null;
    found = [];
    for (let i = 0; i < size; i++) {
      if (tests.every(test => test(i)) && (!text || words.every(word => text[i].includes(word)))) found.push(i);
    }
    const order = at("order").value;
    if (order === "worst") {
      const rank = i => (rows.bits[i] & BROKE) ? 0 : RANK[rows.outcome[i]];
      found.sort((a, b) => rank(a) - rank(b) || a - b);
    } else if (order === "long") found.sort((a, b) => rows.steps[b] - rows.steps[a] || a - b);
    at("list").replaceChildren();
    shown = 0;
    at("count").textContent = found.length.toLocaleString("en") + " of " + size.toLocaleString("en") + " episodes";
    chips();
    more();
  }

  function chips() {
    const box = at("chips"), some = Object.keys(filters).filter(field => field !== "text");
    box.replaceChildren();
    for (const field of some) {
      const said = (SAID[field] || [])[Number(filters[field])] || (NAMED[field] || field) + ": " + filters[field];
      const button = element("button", "chip", said + " \u00d7");
      button.type = "button";
      button.setAttribute("aria-label", "Remove the filter " + said);
      button.addEventListener("click", () => { delete filters[field]; changed(); });
      box.append(button);
    }
    if (some.length > 1) {
      const button = element("button", "chip", "clear all");
      button.type = "button";
      button.addEventListener("click", () => { filters = {}; changed(); });
      box.append(button);
    }
  }

  function more() {
    for (const i of found.slice(shown, shown + PAGE)) at("list").append(row(i));
    shown = Math.min(found.length, shown + PAGE);
    at("more").hidden = shown >= found.length;
  }

  function row(i) {
    const item = element("li"), outcome = FIELDS.outcome(i), top = element("div", "top"), n = rows.n[i];
    top.append(element("span", "chip " + outcome, outcome), element("b", "", FIELDS.condition(i)));
    if (FIELDS.cause(i)) top.append(element("span", "fall small", FIELDS.cause(i)));
    top.append(element("span", "small task", label(i) + "/" + rows.task[i]));
    top.append(element("span", "small", rows.steps[i] + (rows.steps[i] === 1 ? " step" : " steps")));
    if (opened.has(n)) {
      const link = element("a", "small", "open");
      link.href = "#e" + n;
      top.append(link);
    }
    item.append(top);
    const why = name("why")(i);
    if (why) item.append(element("div", "small text", why));
    if (!opened.has(n)) item.append(element("code", "small", "crosswind show " + all.folder + " " + n));
    return item;
  }

  function changed(scroll) {
    at("text").value = filters.text || "";
    for (const field of CHOICES) at(field).value = filters[field] || "";
    search();
    const query = new URLSearchParams(filters).toString();
    history.replaceState(null, "", query ? "#find?" + query : "#find");
    if (scroll) document.getElementById("find").scrollIntoView();
  }

  function opens() {
    const id = decodeURIComponent(location.hash.slice(1)), target = id && document.getElementById(id);
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  }

  document.addEventListener("click", event => {
    const link = event.target.closest("a[data-find]");
    if (!link) return;
    event.preventDefault();
    filters = Object.fromEntries(new URLSearchParams(link.dataset.find));
    changed(true);
  });
  let waiting = 0;
  at("text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { filters.text = at("text").value; if (!filters.text) delete filters.text; search(); }, 150);
  });
  for (const field of CHOICES) at(field).addEventListener("change", () => {
    if (at(field).value) filters[field] = at(field).value; else delete filters[field];
    changed();
  });
  at("order").addEventListener("change", search);
  at("more").addEventListener("click", more);
  addEventListener("hashchange", opens);
  if (location.hash.startsWith("#find?")) {
    filters = Object.fromEntries(new URLSearchParams(location.hash.slice(6)));
    changed(true);
  } else { search(); opens(); }
})();
