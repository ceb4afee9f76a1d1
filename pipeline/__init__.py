"""The recipe language and its runner: loader, planner, artifact store, doit tasks and commands. Never imports tvm."""
