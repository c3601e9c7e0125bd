"""The engine: matrix, plan, runner, comparison; knows nothing about arithmetic."""
