//go:build !failpoints

package main

import "coxswain/session"

// wrapStore gives the store as it is. A build with the tag failpoints, which
// only tests make, can kill the process between any two store calls.
func wrapStore(st session.Store) session.Store { return st }
