"""The blocking client: one session machine, and the transports that carry it. Floor 0."""
