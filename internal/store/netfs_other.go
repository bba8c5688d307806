//go:build !linux

package store

// networkFileSystem is not known here.
func networkFileSystem(string) string { return "" }
