"""Does a plugin keep its contract? `pytest --pyargs kafka_chaos.conformance` asks those that others wrote.

`--chaos-plugins` says which are tested: a distribution, a folder, or one plugin as `fault:nap`. The ini key
`chaos_plugins` is the same for every run. Without both it is every plugin that this project does not bring.

A fault is injected as a scenario of its own distribution has it, with the topics and the load there; without one it is
injected into `smoke`. `--chaos-fault "nap={target: all}"` replaces target, duration or parameters. It runs in virtual
time where that is enough, else on the first driver that can do what it takes; `--chaos-driver` names another one. A
driver starts the system `--chaos-system` (python).
"""
