"""The main job on one machine: broker, GM, LC, worker and a device, a real model on real data, round after round."""
