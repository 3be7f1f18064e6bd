package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"
)

// Config sets a configuration parameter of the running server.
func (s *Server) Config(tb testing.TB, parameter, value string) {
	tb.Helper()

	err := s.client.ConfigSet(context.Background(), parameter, value).Err()
	if err != nil {
		tb.Fatalf("%s: CONFIG SET %s %s: %v", s.Addr(), parameter, value, err)
	}
}

// Version returns the server's name, "redis" or "valkey", and the version of
// that: a Valkey server also reports the Redis version it is compatible with,
// which is not the one returned.
func (s *Server) Version() (name, version string) {
	s.tb.Helper()

	info := s.info("server")
	name = infoField(info, "server_name")
	if name == "" {
		name = "redis"
	}

	return name, infoField(info, name+"_version")
}

// CommandCount returns how often the server has called each command since it
// was started, by its name in lower case, subcommands as "config|set". These
// are the server's own statistics (INFO commandstats): they include the calls
// that scripts make and those of this package, and leave out commands that were
// rejected before execution, as for a wrong number of arguments. The server's
// total_commands_processed counts in the same way, so it says no more about
// what clients sent; for that see [Server.ClientCommands].
func (s *Server) CommandCount() map[string]int64 {
	s.tb.Helper()

	counts := make(map[string]int64)
	for line := range strings.Lines(s.info("commandstats")) {
		command, statistics, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !found {
			continue
		}
		calls, _, _ := strings.Cut(statistics, ",")
		count, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			s.tb.Fatalf("%s: calls in %q: %v", s.Addr(), line, err)
		}
		counts[command] = count
	}

	return counts
}

// ClientCommands returns how many commands the server has executed for clients
// since the first call of this method, which returns 0. So a test takes the
// difference of two calls.
//
// A script counts as one command, whatever it calls; the commands of a
// transaction count each, MULTI and EXEC too. A new connection's greeting counts
// (HELLO, CLIENT SETINFO), as do a replica's and a sentinel's commands, but not
// this package's own, nor administrative ones (CONFIG, MONITOR) nor AUTH, nor
// commands rejected before execution.
//
// The server keeps no such number: within its statistics a script's calls are
// indistinguishable from a client's. They are told apart by MONITOR, which slows
// the server down from the first call on, so measure time without it. Restart
// begins a new count.
func (s *Server) ClientCommands() int64 {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.monitor == nil {
		monitor, err := startMonitor(s.Addr(), s.client)
		if err != nil {
			s.tb.Fatalf("%s: MONITOR: %v", s.Addr(), err)
		}
		s.monitor = monitor
	}
	count, err := s.monitor.count()
	if err != nil {
		s.tb.Fatalf("%s: count commands: %v", s.Addr(), err)
	}

	return count
}

func (s *Server) info(section string) string {
	s.tb.Helper()

	info, err := s.client.Info(context.Background(), section).Result()
	if err != nil {
		s.tb.Fatalf("%s: INFO %s: %v", s.Addr(), section, err)
	}

	return info
}
