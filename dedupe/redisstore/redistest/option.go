package redistest

// Option changes how servers are started.
type Option func(*setup)

// setup is how a server is to be started.
type setup struct {
	// binary is the server's name in PATH, or its path.
	binary string
	// directives are the lines of the configuration file. Unlike flags they
	// can be rewritten by the server, as sentinels ask it to on a failover.
	directives []string
	// flags override directives.
	flags []string
	// port proposes one to listen on.
	port func() (int, error)
	// master, if any, is the server to replicate.
	master *Server
}

// Binary runs the named server, such as "valkey-server", or the one at a path,
// whatever INTERLOCK_REDIS_SERVER says.
func Binary(name string) Option {
	return func(s *setup) { s.binary = name }
}

// Config passes further arguments to the server, in the form of its command
// line: Config("--maxmemory", "10mb"). A server that requires authentication is
// not supported.
func Config(args ...string) Option {
	return func(s *setup) { s.flags = append(s.flags, args...) }
}

// ReplicaOf makes the server a replica of master. Start returns when the
// replica has its first copy of the master's data and follows it.
func ReplicaOf(master *Server) Option {
	return func(s *setup) { s.master = master }
}
