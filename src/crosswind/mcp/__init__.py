"""The Model Context Protocol: real servers behind the same layers, and episodes served to agents.

proxy.py, proxy_http.py, relay.py, listing.py    `crosswind proxy`: between clients and a server, over pipes or HTTP
live.py, toolbox.py, tools.py      stacks for a live server; the server as a toolbox; tools as the protocol writes them
streaming.py                       releases of a live server that change from session to session
serve.py, http_server.py, bridge.py, command.py    an episode as a server, and `cmd:` agents that use it
tasks.py, worlds.py, conditions.py, running.py, learn.py, drift.py    tasks for your server; its interface over time
wire.py, http_channel.py, upstream.py, schema.py    frames, channels, a client, and JSON Schema
"""
