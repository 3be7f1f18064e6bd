// Package redisstore keeps Interlock's records in Redis.
package redisstore
