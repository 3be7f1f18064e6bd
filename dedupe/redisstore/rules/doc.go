// Package rules holds the tests of the rules by which this module stays right when Redis, the
// network or a process does not: R1 to R13, a file for each.
//
// A rule answers a failure that has happened to others, so its tests make that failure happen: with
// real servers on loopback, a proxy that loses, delays and misplaces chosen replies, and child
// processes that are stopped and killed. Nothing is mocked, and no test waits for time to pass where
// it can wait for what it is about.
//
//	R1   one key in every script
//	R2   every script may run twice; no reply is believed that does not name its call
//	R3   only the server's clock decides expiry
//	R4   a key never lacks a TTL, and nothing is left behind
//	R5   a late owner changes nothing
//	R6   fences rise, whatever happens to the data
//	R7   what follows the handler does not depend on the client
//	R8   every call returns within its budget
//	R9   a handler learns that its lease is over before another one starts
//	R10  renewals begin in time, tolerate failures, and end with the lease
//	R11  conflict and outage are never confused
//	R12  each of Redis's own errors ends in success or in one typed error
//	R13  what cannot be read fails closed
package rules
