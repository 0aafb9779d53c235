"""The engine: worlds, tasks, perturbations, sessions, the oracle, the laws and certified draws."""
