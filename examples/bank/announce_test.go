package main

import (
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestListening(t *testing.T) {
	for _, test := range []struct {
		args    string
		pattern string
		lines   []string // what the lines to try begin with
	}{
		{"", `^listening http=127\.0\.0\.1:\d+ echo=127\.0\.0\.1:\d+ grpc=127\.0\.0\.1:\d+$`, []string{"curl", "curl", "curl", "http:", "grpcurl"}},
		{"-echo=", `^listening http=127\.0\.0\.1:\d+ grpc=127\.0\.0\.1:\d+$`, []string{"curl", "curl", "curl", "grpcurl"}},
		{"-echo= -grpc=", `^listening http=127\.0\.0\.1:\d+$`, []string{"curl", "curl", "curl"}},
		{"-http :0 -echo 0.0.0.0:0", `^listening http=\[::\]:\d+ echo=(\[::\]|0\.0\.0\.0):\d+ grpc=127\.0\.0\.1:\d+$`, []string{"curl", "curl", "curl", "http:", "grpcurl"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			said, at, stop := serving(t, append([]string{"-story=false"}, strings.Fields(test.args)...)...)
			if i := slices.IndexFunc(said, func(line string) bool { return strings.HasPrefix(line, "listening") }); !matches(test.pattern, said[i]) {
				t.Errorf("%s", said[i])
			}
			var lines []string
			for _, line := range said {
				if first, _, _ := strings.Cut(line, "/"); first == "http:" || strings.Contains(first, "curl ") {
					command, _, _ := strings.Cut(first, " ")
					lines = append(lines, command)
					if strings.Contains(line, "0.0.0.0") || strings.Contains(line, "[::]") {
						t.Errorf("not an address to go to: %s", line)
					}
				}
			}
			if !slices.Equal(lines, test.lines) {
				t.Errorf("%q", lines)
			}
			for _, address := range []string{at.http, at.echo, at.grpc} {
				if address == "" {
					continue
				}
				connection, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				_ = connection.Close()
			}
			if status := stop(); status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// The line for gRPC can be pasted as the lines for HTTP can.
func TestGRPCLine(t *testing.T) {
	said, at, stop := serving(t, "-story=false")
	defer stop()
	i := slices.IndexFunc(said, func(line string) bool { return strings.HasPrefix(line, "grpcurl ") })
	if i < 0 {
		t.Fatalf("no line to try: %q", said)
	}
	if !strings.HasSuffix(said[i], " "+at.grpc+" bank.v1.Bank/Withdraw") {
		t.Errorf("%s", said[i])
	}
	if _, err := exec.LookPath("grpcurl"); err != nil {
		t.Skip("grpcurl is not installed: its line is not tried")
	}
	for _, replayed := range []bool{false, true} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(said[i], "grpcurl ", "grpcurl -v ", 1)).CombinedOutput()
		text := string(out)
		if err != nil || !strings.Contains(text, `"balance": "800"`) || strings.Contains(text, "idempotent-replayed: true") != replayed {
			t.Errorf("%s\n%s%v", said[i], text, err)
		}
	}
}
