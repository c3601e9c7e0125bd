"""The arithmetic: features, their compiled reference and the device backends; knows no gate."""
