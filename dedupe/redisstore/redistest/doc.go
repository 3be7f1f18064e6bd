// Package redistest is test support for code that talks to Redis. It runs the
// real thing on loopback, since neither a mock nor an emulation has the timing,
// the failover or the wire behaviour that an idempotency store must survive.
//
//   - [Start] runs a server, which a test can pause, kill and restart.
//   - [StartCluster] runs a cluster, whose slots a test can migrate.
//   - [StartSentinel] runs a master and a replica watched by sentinels, which a
//     test can fail over.
//   - [NewProxy] stands between a client and a server, and loses, delays, holds
//     back, replaces or misplaces chosen replies, as networks and bugs do.
//
// Everything listens on 127.0.0.1, on free ports, and is gone when the test that
// started it ends, or when its process dies. Tests are skipped where no server
// is installed, except in continuous integration (CI=true), where they fail.
// The environment variable INTERLOCK_REDIS_SERVER names the server to run:
// redis-server is the default, valkey-server an alternative, a path also works.
// Redis 7.0 is the oldest version meant to work.
package redistest
