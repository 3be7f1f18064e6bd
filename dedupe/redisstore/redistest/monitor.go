package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// countMarker is what the control client has the server echo to learn that all
// that was executed before has been seen. MONITOR reports in order of execution.
const countMarker = "redistest: count"

var errMonitorEnded = errors.New("the server closed the MONITOR connection")

// monitor counts the commands of clients in the output of MONITOR.
type monitor struct {
	conn    net.Conn
	control *controlClient
	counts  chan int64    // the count at each marker
	done    chan struct{} // closed when the connection has ended
}

func startMonitor(addr string, control *controlClient) (*monitor, error) {
	conn, err := net.DialTimeout("tcp", addr, controlTimeout)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn, control: control, counts: make(chan int64), done: make(chan struct{})}

	output := bufio.NewReader(conn)
	err = m.begin(output)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go m.read(output)

	return m, nil
}

// begin returns when the server has confirmed that it reports from now on.
func (m *monitor) begin(output *bufio.Reader) error {
	err := m.conn.SetDeadline(time.Now().Add(controlTimeout))
	if err != nil {
		return err
	}
	_, err = m.conn.Write([]byte("MONITOR\r\n"))
	if err != nil {
		return err
	}
	confirmation, err := output.ReadString('\n')
	if err != nil {
		return err
	}
	if confirmation != "+OK\r\n" {
		return fmt.Errorf("unexpected reply %q", confirmation)
	}

	return m.conn.SetDeadline(time.Time{})
}

// read counts until the connection ends. A line reads like
//
//	+1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"
//
// with "lua" for the address when a script has called the command. Arguments are
// escaped, so that each command is one line.
func (m *monitor) read(output *bufio.Reader) {
	defer close(m.done)

	var count int64
	for {
		line, err := output.ReadString('\n')
		if err != nil {
			return
		}
		_, rest, _ := strings.Cut(line, "[")
		source, command, _ := strings.Cut(rest, "] ")
		_, addr, _ := strings.Cut(source, " ")
		switch {
		case addr == "lua":
		case !m.control.owns(addr):
			count++
		case strings.Contains(command, countMarker):
			m.counts <- count
		}
	}
}

// count returns the number of commands that clients have had executed so far.
func (m *monitor) count() (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()

	err := m.control.Echo(ctx, countMarker).Err()
	if err != nil {
		return 0, err
	}
	select {
	case count := <-m.counts:
		return count, nil
	case <-m.done:
		return 0, errMonitorEnded
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// close ends the counting and returns when nothing of it runs any more.
func (m *monitor) close() {
	_ = m.conn.Close()
	for {
		select {
		case <-m.counts:
		case <-m.done:
			return
		}
	}
}
