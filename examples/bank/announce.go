package main

import (
	"fmt"
	"io"
	"net"
	"net/url"

	"github.com/google/uuid"
)

// announce prints where the bank is, and what to do there. The gRPC line comes with the key of the
// first one, and moves money nevertheless: it asks for another operation.
func (c config) announce(stdout io.Writer, l listeners) {
	accounts, key := "http://"+reachable(l.http)+"/accounts", uuid.Must(uuid.NewV7())
	_, _ = fmt.Fprintf(stdout, `
listening%[1]s
redis %[2]s

Run the first line twice: the second answer is a replay of the first.
curl -i %[3]s/A/withdraw -H 'Idempotency-Key: %[4]s' -H 'Content-Type: application/json' -d '{"amount":200}'
curl -i %[3]s/A/transfer -H 'Content-Type: application/json' -d '{"to":"B","amount":300}'
curl -i %[3]s/A
`, l, redacted(c.redis), accounts, key)
	if l.echo != nil {
		_, _ = fmt.Fprintf(stdout, "\nThe same accounts by Echo:\nhttp://%s/accounts\n", reachable(l.echo))
	}
	if l.grpc != nil {
		_, _ = fmt.Fprintf(stdout, "\nThe same account by gRPC; the key of the first line is a new one here:\n"+
			"grpcurl -plaintext -H 'idempotency-key: %s' -d '{\"id\":\"A\",\"amount\":200}' %s bank.v1.Bank/Withdraw\n", key, reachable(l.grpc))
	}
	_, _ = fmt.Fprintf(stdout, "\nA second replica:\ngo run ./examples/bank -story=false -http 127.0.0.1:0 -redis '%s'\n", redacted(c.redis))
}

// String returns the addresses as the line "listening" has them.
func (l listeners) String() (text string) {
	for _, served := range []struct {
		name     string
		listener net.Listener
	}{{"http", l.http}, {"echo", l.echo}, {"grpc", l.grpc}} {
		if served.listener != nil {
			text += fmt.Sprintf(" %s=%s", served.name, served.listener.Addr())
		}
	}
	return text
}

// reachable returns an address as clients on this machine can use it.
func reachable(l net.Listener) string {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return l.Addr().String()
}

// redacted returns a URL without what may be secret.
func redacted(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(URL not readable)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
