package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// startTimeout bounds the time until a server answers: it takes tens of
	// milliseconds, and a multiple on a busy machine.
	startTimeout = 20 * time.Second

	// syncTimeout bounds the time until a replica has its master's data.
	syncTimeout = 20 * time.Second

	// portAttempts is how many ports are tried before giving up.
	portAttempts = 10
)

var (
	errPortTaken = errors.New("port taken by another process")
	errExited    = errors.New("server exited")
	errStranger  = errors.New("another server answers on the port")
	errNotReady  = errors.New("not ready")
)

// Server is a Redis (or compatible) server that persists nothing. The methods
// that act on it end the test when they fail, so they must be called in the
// test's goroutine.
type Server struct {
	tb     testing.TB
	setup  setup
	dir    string
	port   int
	client *controlClient

	mu      sync.Mutex
	process *process
	monitor *monitor
}

// Start runs a server until the end of the test, and returns when it answers.
// Without the binary the test is skipped, or fails where CI is "true".
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()

	return start(tb, newSetup([]string{
		`save ""`,
		"appendonly no",
		// A replica is in sync at once, and leaves no copy of the data that a
		// restart would load.
		"repl-diskless-sync yes",
		"repl-diskless-sync-delay 0",
		"rdb-del-sync-files yes",
	}, opts))
}

func newSetup(directives []string, opts []Option) setup {
	s := setup{binary: os.Getenv("INTERLOCK_REDIS_SERVER"), directives: directives, port: freePort}
	if s.binary == "" {
		s.binary = "redis-server"
	}
	for _, opt := range opts {
		opt(&s)
	}
	if s.master != nil {
		s.directives = append(s.directives, fmt.Sprintf("replicaof %s %d", loopback, s.master.port))
	}

	return s
}

func start(tb testing.TB, setup setup) *Server {
	tb.Helper()

	s := &Server{tb: tb, setup: setup, dir: tb.TempDir()}
	s.setup.binary = locate(tb, setup.binary)
	tb.Cleanup(s.release)

	err := errPortTaken
	for attempt := 0; attempt < portAttempts && errors.Is(err, errPortTaken); attempt++ {
		err = s.configure()
		if err == nil {
			err = s.run()
		}
	}
	if err != nil {
		tb.Fatalf("start %s: %v", setup.binary, err)
	}
	if setup.master != nil {
		s.awaitSync()
	}

	return s
}

// locate returns the path of the binary, or ends the test if there is none.
func locate(tb testing.TB, binary string) string {
	tb.Helper()

	path, err := exec.LookPath(binary)
	if err == nil {
		return path
	}
	report := tb.Skipf
	if os.Getenv("CI") == "true" {
		report = tb.Fatalf
	}
	report("%s not found: apt-get install %s", binary, filepath.Base(binary))

	return ""
}

// configure settles the port, and writes the configuration file.
func (s *Server) configure() error {
	port, err := s.setup.port()
	if err != nil {
		return err
	}
	s.port = port
	if s.client != nil {
		_ = s.client.Close()
	}
	s.client = newControlClient(s.Addr())

	directives := append([]string{
		"port " + strconv.Itoa(port),
		"bind " + loopback,
	}, s.setup.directives...)

	return os.WriteFile(s.configFile(), []byte(strings.Join(directives, "\n")+"\n"), 0o600)
}

func (s *Server) configFile() string { return filepath.Join(s.dir, "server.conf") }

// run launches the configured server and waits until it answers.
func (s *Server) run() error {
	args := append([]string{s.configFile()}, s.setup.flags...)
	process, err := launch(s.setup.binary, s.dir, filepath.Join(s.dir, "server.log"), args)
	if err != nil {
		return err
	}
	s.begin(process)

	err = poll(startTimeout, func() (bool, error) {
		if !process.running() {
			return true, errExited
		}
		err := s.ready()
		return err == nil, err
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errExited) && strings.Contains(process.tail(), "in use"):
		return errPortTaken
	default:
		return fmt.Errorf("%w; the log ends with:\n%s", err, process.tail())
	}
}

// begin notes that the server is a new process, with nothing counted yet.
func (s *Server) begin(process *process) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.process = process
	if s.monitor != nil {
		s.monitor.close()
		s.monitor = nil
	}
}

// ready returns nil when the server answers. That it is this one, and not
// another which took the port first, shows in the configuration file it names.
func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	// The client would take its time, and log, while nothing listens.
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return err
	}
	_ = conn.Close()

	err = s.client.Ping(ctx).Err()
	if err != nil {
		return err
	}
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if infoField(info, "config_file") != s.configFile() {
		return errStranger
	}

	return nil
}

func (s *Server) awaitSync() {
	s.tb.Helper()

	err := poll(syncTimeout, func() (bool, error) {
		info, err := s.client.Info(context.Background(), "replication").Result()
		if err != nil {
			return false, err
		}
		status := infoField(info, "master_link_status")
		if status != "up" {
			return false, fmt.Errorf("%w: master_link_status is %q", errNotReady, status)
		}
		return true, nil
	})
	if err != nil {
		s.tb.Fatalf("replica %s: %v; the log ends with:\n%s", s.Addr(), err, s.process.tail())
	}
}

// Addr returns the server's address, as host:port.
func (s *Server) Addr() string { return net.JoinHostPort(loopback, strconv.Itoa(s.port)) }

// URL returns the server's address in the form that [redis.ParseURL] takes.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Client returns a new client with stock options, which is closed at the end of
// the test. Each has a connection pool of its own, as separate processes have.
func (s *Server) Client() *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	s.tb.Cleanup(func() { _ = client.Close() })

	return client
}

// Stop shuts the server down, paused or not. It may be stopped already.
func (s *Server) Stop() { s.act("stop", (*process).stop) }

// Kill ends the server with SIGKILL: it gets no chance to tell its clients.
func (s *Server) Kill() { s.act("kill", (*process).kill) }

// Restart stops the server unless that was done before, and starts it again on
// the same port. Its data are lost; a cluster node remains in the cluster, and
// a server that a sentinel has reconfigured remains what it was made.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()

	// A connection made by any process may use the free port meanwhile.
	err := poll(startTimeout, func() (bool, error) {
		err := s.run()
		return !errors.Is(err, errPortTaken), err
	})
	if err != nil {
		s.tb.Fatalf("restart %s: %v", s.Addr(), err)
	}
}

// Pause freezes the server with SIGSTOP: its connections stay open, and new
// ones are accepted by the kernel, but nothing is answered. It returns when the
// server has come to a halt.
func (s *Server) Pause() {
	s.tb.Helper()
	s.act("pause", (*process).pause)
	s.act("pause", func(p *process) error { return poll(gracePeriod, p.stopped) })
}

// Resume lets a paused server go on with SIGCONT. It then executes what it was
// sent in the meantime.
func (s *Server) Resume() { s.act("resume", (*process).resume) }

func (s *Server) act(name string, action func(*process) error) {
	s.tb.Helper()

	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	err := action(process)
	if err != nil {
		s.tb.Fatalf("%s %s: %v", name, s.Addr(), err)
	}
}

func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.process.running()
}

// release ends all that start began, however far that got.
func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.monitor != nil {
		s.monitor.close()
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	if s.process != nil {
		err := s.process.stop()
		if err != nil {
			s.tb.Errorf("stop %s: %v", s.Addr(), err)
		}
	}
}
