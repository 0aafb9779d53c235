"""Crosswind's episodes inside other people's frameworks.

`driven` plays an episode whose agent is somebody else's loop, and `requested` says which episode that is. On them stand
tasks for Inspect AI (`inspect_tasks`, and `inspect_logs` for the way back), a WebSocket server that speaks OpenEnv's
protocol (`openenv_server`), sessions for OpenEnv's harnesses and TRL (`openenv_session`), and an agent loop for verl
(`verl_loop`). The adapter for verifiers is a package of its own, `packages/crosswind_vf`, because of its pins.
"""
