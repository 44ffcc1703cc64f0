"""What a namespace keeps: policies and their sweeps."""
