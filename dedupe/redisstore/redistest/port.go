package redistest

import (
	"errors"
	"net"
	"strconv"
)

const (
	loopback = "127.0.0.1"

	// clusterBusOffset is how far a cluster node's bus port is from its client
	// port, by default and in the mind of CLUSTER MEET.
	clusterBusOffset = 10000
	maxPort          = 65535
)

var errNoPort = errors.New("no free port for a cluster node")

// freePort returns a port that was free a moment ago: the caller must be ready
// to find that another process has taken it since.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()

	return listener.Addr().(*net.TCPAddr).Port, nil
}

// freeClusterPort returns a free port whose cluster bus port is free as well.
func freeClusterPort() (int, error) {
	for range 100 {
		port, err := freePort()
		if err != nil {
			return 0, err
		}
		bus := port + clusterBusOffset
		if bus > maxPort {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(bus)))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}

	return 0, errNoPort
}
