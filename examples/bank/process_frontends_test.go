//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
	"github.com/interlock-go/interlock/examples/bank/bankpb"
)

// frontEnds are the process's net/http, Echo and gRPC.
func (p *process) frontEnds() []frontEnd {
	return []frontEnd{overJSON("nethttp", p.url), overJSON("echo", "http://"+p.at.echo), overGRPC(dial(p.t, p.at.grpc))}
}

// What one process does by one framework excludes what the other does by another one.
func TestFrameworksOfTwoProcessesExcludeEachOther(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	two := start(t, "-redis", server.URL(), "-work", "0", "-wait", "0")
	others := two.frontEnds()
	for i := range others {
		one := start(t, "-redis", server.URL(), "-work", "10m")
		holder := one.frontEnds()[i]
		holding := while(func() result { return holder.withdraw(t.Context(), "A", 1, "") })
		eventually(t, "the account is locked", func() bool { return held(t, client, 1) })
		for _, other := range others {
			for _, got := range []result{
				other.withdraw(t.Context(), "A", 1, ""),
				other.transfer(t.Context(), "B", "A", 1, ""),
			} {
				if got != (result{problem: "resource-locked"}) {
					t.Errorf("%s at one, %s at the other: %+v", holder.name, other.name, got)
				}
			}
		}
		one.signal(syscall.SIGKILL)
		if got := <-holding; got.err == nil {
			t.Errorf("%s: %+v", holder.name, got)
		}
		one.wait()
		if err := client.Del(t.Context(), client.Keys(t.Context(), "bank:guards:*").Val()...).Err(); err != nil { // the lease of the dead
			t.Fatal(err)
		}
	}
}

func TestNothingIsLostBetweenFrameworksOfTwoProcesses(t *testing.T) {
	server := redistest.Start(t)
	flags := []string{"-redis", server.URL(), "-work", "300ms", "-wait", "30s"}
	one, two := start(t, flags...), start(t, flags...)
	first, second := one.frontEnds(), two.frontEnds()
	withdrawAtOnce(t, []frontEnd{first[0], second[1], first[2]})
	for _, p := range []*process{one, two} {
		wantAccount(t, p.url, "A", `{"account":"A","balance":400,"executions":3}`)
	}
}

// A duplicate that reaches another replica gets the first answer, by each framework for itself.
func TestDuplicatesAtTwoProcesses(t *testing.T) {
	server := redistest.Start(t)
	flags := []string{"-redis", server.URL(), "-work", "0"}
	first, second := start(t, flags...).frontEnds(), start(t, flags...).frontEnds()
	for i := range first {
		want := result{receipt: receipt{int64(i + 1), "A", int64(900 - 100*i)}}
		if got := first[i].withdraw(t.Context(), "A", 100, "k"); got != want {
			t.Errorf("first by %s: %+v", first[i].name, got)
		}
		want.replayed = true
		if got := second[i].withdraw(t.Context(), "A", 100, "k"); got != want {
			t.Errorf("again by %s: %+v", second[i].name, got)
		}
	}
}

// A process that is told to stop answers what it has begun by any framework, and the accounts stay
// locked until it has.
func TestAllFrameworksStopInOrder(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			server := redistest.Start(t)
			client := server.Client()
			one := start(t, "-redis", server.URL(), "-work", "1500ms", "-lease", "300ms")
			two := start(t, "-redis", server.URL(), "-work", "0", "-wait", "30s")
			var begun, second []<-chan result
			for i, frontEnd := range one.frontEnds() {
				begun = append(begun, while(func() result { return frontEnd.withdraw(t.Context(), accountIDs[i], 200, "") }))
			}
			eventually(t, "all withdrawals run", func() bool { return held(t, client, 3) })
			one.signal(s)
			one.stopsListening()
			for i, frontEnd := range two.frontEnds() {
				id := accountIDs[(i+1)%len(accountIDs)] // of another framework
				second = append(second, while(func() result { return frontEnd.withdraw(t.Context(), id, 300, "") }))
			}
			for _, answer := range append(begun, second...) {
				if got := <-answer; got.err != nil || got.problem != "" {
					t.Errorf("%+v", got)
				}
			}
			if state := one.wait(); state.ExitCode() != 0 {
				t.Errorf("ended with %v", state)
			}
			for _, id := range accountIDs {
				wantAccount(t, two.url, id, `{"account":"`+id+`","balance":500,"executions":2}`)
			}
		})
	}
}

// A client of gRPC that stays connected does not keep the process from ending.
func TestStopsWithIdleConnections(t *testing.T) {
	p := start(t)
	if _, err := bankpb.NewBankClient(dial(t, p.at.grpc)).GetAccount(t.Context(), &bankpb.GetAccountRequest{Id: "A"}); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	if state := p.wait(); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
}
