package redistest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	masterName = "interlock"
	sentinels  = 3
	quorum     = 2

	// downAfter is when a server that does not answer counts as down, and
	// failoverTimeout what a failover may take, both in milliseconds.
	downAfter       = 1000
	failoverTimeout = 5000

	// sentinelTimeout bounds the time until the sentinels have found each other
	// and the replica, and promotionTimeout the time until they have replaced a
	// master. Either takes a few seconds, as sentinels talk every one or two.
	sentinelTimeout  = 30 * time.Second
	promotionTimeout = 45 * time.Second
)

// Sentinel is a master and a replica that three sentinels watch, two of which
// have to agree that the master is down. They take it for down when it has not
// answered for a second.
type Sentinel struct {
	tb        testing.TB
	servers   []*Server
	sentinels []*Server
}

// StartSentinel runs the servers and their sentinels until the end of the test,
// and returns when the sentinels are able to fail over, after some seconds.
func StartSentinel(tb testing.TB, opts ...Option) *Sentinel {
	tb.Helper()

	master := Start(tb, opts...)
	replica := Start(tb, append([]Option{ReplicaOf(master)}, opts...)...)
	s := &Sentinel{tb: tb, servers: []*Server{master, replica}}

	for range sentinels {
		setup := newSetup([]string{
			fmt.Sprintf("sentinel monitor %s %s %d %d", masterName, loopback, master.port, quorum),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", masterName, downAfter),
			fmt.Sprintf("sentinel failover-timeout %s %d", masterName, failoverTimeout),
		}, opts)
		setup.flags = []string{"--sentinel"}
		s.sentinels = append(s.sentinels, start(tb, setup))
	}
	err := poll(sentinelTimeout, s.complete)
	if err != nil {
		tb.Fatalf("sentinels: %v", err)
	}

	return s
}

// complete reports whether each sentinel knows the replica and the others.
func (s *Sentinel) complete() (bool, error) {
	ctx := context.Background()
	for _, sentinel := range s.sentinels {
		command := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", masterName)
		err := sentinel.client.Process(ctx, command)
		if err != nil {
			return false, err
		}
		master := command.Val()
		for field, wanted := range map[string]string{
			"flags":               "master",
			"num-slaves":          "1",
			"num-other-sentinels": fmt.Sprint(sentinels - 1),
		} {
			if master[field] != wanted {
				return false, fmt.Errorf("%w: sentinel %s has %s %q, not %q",
					errNotReady, sentinel.Addr(), field, master[field], wanted)
			}
		}
	}

	return true, nil
}

// MasterName returns the name by which the sentinels know the master.
func (s *Sentinel) MasterName() string { return masterName }

// Addrs returns the sentinels' addresses, each as host:port.
func (s *Sentinel) Addrs() []string {
	addrs := make([]string, len(s.sentinels))
	for i, sentinel := range s.sentinels {
		addrs[i] = sentinel.Addr()
	}

	return addrs
}

// Servers returns the two servers that are watched, whichever is the master.
func (s *Sentinel) Servers() []*Server { return append([]*Server(nil), s.servers...) }

// Sentinels returns the sentinels, so that a test can stop some.
func (s *Sentinel) Sentinels() []*Server { return append([]*Server(nil), s.sentinels...) }

// Client returns a new failover client with stock options, which is closed at
// the end of the test.
func (s *Sentinel) Client() *redis.Client {
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: masterName, SentinelAddrs: s.Addrs()})
	s.tb.Cleanup(func() { _ = client.Close() })

	return client
}

// Master returns the server that the sentinels hold to be the master.
func (s *Sentinel) Master() *Server {
	s.tb.Helper()

	master, err := s.agreed()
	if err != nil {
		s.tb.Fatalf("master: %v", err)
	}

	return master
}

// Failover makes the replica the master without the master's being down, and
// returns the new master once all sentinels name it. The old master is not told
// for another ten seconds or so: until then it accepts writes, from clients that
// have not heard either, which are lost. Those it has accepted but not passed on
// to its replica are lost as well.
func (s *Sentinel) Failover(tb testing.TB) *Server {
	tb.Helper()

	old := s.Master()
	// It is refused until the sentinel has heard from the replica.
	err := poll(sentinelTimeout, func() (bool, error) {
		err := s.sentinels[0].client.Do(context.Background(), "SENTINEL", "FAILOVER", masterName).Err()
		return err == nil, err
	})
	if err != nil {
		tb.Fatalf("SENTINEL FAILOVER: %v", err)
	}

	return s.AwaitPromotion(tb, old)
}

// AwaitPromotion returns the server that has replaced the old master once all
// sentinels name it, for a test that has killed or paused that master.
func (s *Sentinel) AwaitPromotion(tb testing.TB, old *Server) *Server {
	tb.Helper()

	var master *Server
	err := poll(promotionTimeout, func() (bool, error) {
		var err error
		master, err = s.agreed()
		if err != nil {
			return false, err
		}
		if master == old {
			return false, fmt.Errorf("%w: the master is still %s", errNotReady, old.Addr())
		}
		info, err := master.client.Info(context.Background(), "replication").Result()
		return infoField(info, "role") == "master", err
	})
	if err != nil {
		tb.Fatalf("promotion: %v", err)
	}

	return master
}

// agreed returns the server that all sentinels which run take for the master.
func (s *Sentinel) agreed() (*Server, error) {
	var master *Server
	for _, sentinel := range s.sentinels {
		if !sentinel.running() {
			continue
		}
		named, err := s.namedBy(sentinel)
		if err != nil {
			return nil, err
		}
		if master != nil && named != master {
			return nil, fmt.Errorf("%w: the sentinels name %s and %s", errNotReady, master.Addr(), named.Addr())
		}
		master = named
	}
	if master == nil {
		return nil, fmt.Errorf("%w: no sentinel runs", errNotReady)
	}

	return master, nil
}

func (s *Sentinel) namedBy(sentinel *Server) (*Server, error) {
	command := redis.NewStringSliceCmd(context.Background(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
	err := sentinel.client.Process(context.Background(), command)
	if err != nil {
		return nil, err
	}
	host, port := command.Val()[0], command.Val()[1]
	for _, server := range s.servers {
		if server.Addr() == net.JoinHostPort(host, port) {
			return server, nil
		}
	}

	return nil, fmt.Errorf("sentinel %s names a master unknown here, %s:%s", sentinel.Addr(), host, port)
}
