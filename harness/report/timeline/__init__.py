"""The run as one picture: operations, leaders, ISRs and faults over one axis of time."""
