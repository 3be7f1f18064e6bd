package redistest_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
)

// wire is a connection whose every byte matters.
type wire struct {
	t      *testing.T
	conn   net.Conn
	reader *bufio.Reader
}

func dial(t *testing.T, addr string) *wire {
	t.Helper()

	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })

	return &wire{t: t, conn: conn, reader: bufio.NewReader(conn)}
}

func (w *wire) send(args ...string) {
	w.t.Helper()

	err := proto.Write(w.conn, args)
	if err != nil {
		w.t.Fatalf("send %q: %v", args, err)
	}
}

// pipeline sends several requests at once.
func (w *wire) pipeline(requests ...[]string) {
	w.t.Helper()

	var raw bytes.Buffer
	for _, args := range requests {
		err := proto.Write(&raw, args)
		if err != nil {
			w.t.Fatal(err)
		}
	}
	_, err := raw.WriteTo(w.conn)
	if err != nil {
		w.t.Fatalf("send %q: %v", requests, err)
	}
}

// receives checks that the next bytes to arrive are those of raw.
func (w *wire) receives(raw string) {
	w.t.Helper()

	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(raw))
	n, err := io.ReadFull(w.reader, got)
	if string(got[:n]) != raw {
		w.t.Fatalf("received %q (error %v), want %q", got[:n], err, raw)
	}
}

// until returns what arrives up to and including the text.
func (w *wire) until(text string) string {
	w.t.Helper()

	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	var received []byte
	for {
		b, err := w.reader.ReadByte()
		if err != nil {
			w.t.Fatalf("received %q (error %v), waiting for %q", received, err, text)
		}
		received = append(received, b)
		if n := len(received) - len(text); n >= 0 && string(received[n:]) == text {
			return string(received)
		}
	}
}

// silent checks that nothing arrives for a while, not even the end.
func (w *wire) silent() {
	w.t.Helper()

	_ = w.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	b, err := w.reader.ReadByte()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("received %q (error %v), want silence", b, err)
	}
}

// closed checks that nothing arrives but the end.
func (w *wire) closed() {
	w.t.Helper()

	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	b, err := w.reader.ReadByte()
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("received %q (error %v), want the end", b, err)
	}
}
