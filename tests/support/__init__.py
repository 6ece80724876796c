"""Real brokers and listeners for tests: `from support.mosquitto import Mosquitto` and so on."""
