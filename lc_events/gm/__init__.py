"""The stand-alone global manager: jobs, their conditions and work orders, event-sourced; no Kubernetes needed."""
