// Package contender puts every lock library behind the same small interface, configured as its own
// documentation recommends.
package contender

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lock is one library in one process. Run is safe for concurrent use.
type Lock interface {
	// Run waits until it holds key, calls work, and releases key. The context of work ends when the
	// library, or with [Setting.Watch] a watchdog in the library's own terms, holds the lock for lost.
	Run(ctx context.Context, key string, work func(ctx context.Context)) error
	// Close closes the clients.
	Close() error
}

// Contender is a library that takes part.
type Contender struct {
	Name          string
	Module        string // whose version is reported
	Configuration string // how it is configured, for the reader of the results
	Open          func(Setting) (Lock, error)
}

// Setting is what the measurement decides, the same for all.
type Setting struct {
	Servers []string // one address; or several, of a cluster
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)

	// Lease is how long a key is granted for; 0 leaves it to the contender's configuration.
	Lease time.Duration
	// Watch renews leases for those that have no renewal of their own, every third of Lease, as their
	// users have to. Without it the holds are short against every lease and renewal is left out.
	Watch bool
}

var registered []Contender

// Register adds a contender. It is to be called by all processes before anything is measured; tests
// use it to see that a lock which does not work is found out.
func Register(c Contender) { registered = append(registered, c) }

// All returns the contenders, the floor first.
func All() []Contender {
	return append([]Contender{floor, redislockContender, redsyncContender, rueidislockContender, interlock, interlockAutoPipeline}, registered...)
}

// Peers returns the names of the libraries that Interlock is compared with.
func Peers() []string {
	return []string{redislockContender.Name, redsyncContender.Name, rueidislockContender.Name}
}

// The names of this module's own contenders. AutoPipelined differs only where many keys are wanted at
// once.
const (
	Interlock     = "interlock"
	AutoPipelined = "interlock+autopipeline"
)

// FloorName names the contender that does the least anyone can.
const FloorName = "floor"

// Named returns the contender of that name.
func Named(name string) (Contender, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Contender) bool { return c.Name == name })
	if i < 0 {
		return Contender{}, false
	}
	return all[i], true
}

// Version returns the version of the contender's module that is linked in.
func (c Contender) Version() string { return ModuleVersion(c.Module) }

// ModuleVersion returns the version of a module that is linked in, "this tree" for a replaced one
// and "unknown" where the binary does not say.
func ModuleVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dependency := range info.Deps {
		switch {
		case dependency.Path != module:
		case dependency.Replace != nil:
			return "this tree"
		default:
			return dependency.Version
		}
	}
	return "unknown"
}

// errLost is the cause when a watchdog finds a lock lost.
var errLost = errors.New("contender: lock is lost")

// watch calls extend every third of lease, and cancels ctx when that fails. stop ends and joins it.
func watch(ctx context.Context, lease time.Duration, extend func(context.Context) error) (held context.Context, stop func()) {
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-ticker.C:
				if err := extend(held); err != nil {
					cancel(errors.Join(errLost, err))
					return
				}
			}
		}
	}()
	return held, func() {
		cancel(nil)
		<-done
	}
}

// newClient returns a go-redis client with stock options, but for the dialer that counts.
func newClient(s Setting) redis.UniversalClient {
	return redis.NewUniversalClient(options(s))
}

func options(s Setting) *redis.UniversalOptions {
	return &redis.UniversalOptions{Addrs: s.Servers, IsClusterMode: len(s.Servers) > 1, Dialer: s.Dial}
}
