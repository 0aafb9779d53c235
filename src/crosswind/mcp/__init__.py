"""The Model Context Protocol: real servers behind the same layers, and episodes served to agents.

proxy.py, proxy_http.py, relay.py, listing.py    `crosswind proxy`: between clients and a server, over pipes or HTTP
plan.py, hiding.py, envelopes.py   what the proxy does; names kept from the client; what messages carry besides
live.py, toolbox.py, tools.py      stacks for a live server; the server as a toolbox; tools as the protocol writes them
streaming.py                       releases of a live server that change from session to session
serve.py, http_server.py, bridge.py, command.py    an episode as a server, and `cmd:` agents that use it
tasks.py, worlds.py, conditions.py, running.py, isolation.py    tasks for your server; do its episodes share anything?
learn.py, snapshots.py, drift.py   a server's interface: a draft of tasks for it, kept, compared with now
wire.py, http_channel.py, upstream.py, schema.py    frames, channels, a client, and JSON Schema
"""
