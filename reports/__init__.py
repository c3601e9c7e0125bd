"""Writers of one immutable `gate.model.Run`: `junit`, `markdown`, `json`, `console`, `github`."""
