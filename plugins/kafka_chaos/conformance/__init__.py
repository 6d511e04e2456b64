"""Does a plugin keep its contract? `pytest --pyargs kafka_chaos.conformance` asks those that others wrote.

`--chaos-plugins` says which are tested: a distribution, a folder, or one plugin as `fault:nap`. The ini key
`chaos_plugins` is the same for every run. Without both it is every plugin that this project does not bring. A fault
runs on the driver `--chaos-driver` (simulated), and `--chaos-fault "nap={target: all}"` gives it a target, a duration
or parameters. A driver starts the system `--chaos-system` (python).
"""
