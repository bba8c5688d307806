package store

func child(role, dir string) int { return 2 }
