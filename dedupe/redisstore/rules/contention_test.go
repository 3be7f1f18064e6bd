package rules

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// The counters of TestContention are kept as a careful user keeps data: each read and each write
// brings the fence of its lease, and a fence below the highest one seen is refused. A read counts as
// seen, too, or a stalled holder could still write between the next one's read and write.
//
// What is written, and under which fence, also goes into a journal, in the same step.
var (
	readCounter = redis.NewScript(`
		if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) then return -1 end
		redis.call('HSET', KEYS[1], 'fence', ARGV[1])
		return tonumber(redis.call('HGET', KEYS[1], 'value') or 0)`)

	writeCounter = redis.NewScript(`
		if ARGV[1] ~= redis.call('HGET', KEYS[1], 'fence') then return -1 end
		redis.call('HSET', KEYS[1], 'value', ARGV[2])
		return redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])`)
)

// errStale is a read or write that was refused for its fence.
var errStale = errors.New("stale fence")

const (
	workersPerProcess  = 2
	processes          = 4
	incrementsByWorker = 100
	contentionLease    = 400 * time.Millisecond
)

// TestContention has 8 workers in 4 processes add to two counters, reading and writing in two steps,
// while the processes are killed and replaced, and stopped for longer than their lease.
//
// An increment is acknowledged when its worker has heard of its write. A worker that is killed between
// the two leaves an increment that nobody counts, so a counter may end above its acknowledged
// increments by one for each worker that was killed; never below. And every write must be to the value
// that the one before it left: in the journal the values go up one by one, and the fences rise.
func TestContention(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client()

	crowd := make([]*crew, processes)
	for i := range crowd {
		crowd[i] = &crew{task: counterTask{Addr: server.Addr()}}
		for w := range crowd[i].task.Left {
			crowd[i].task.Left[w] = incrementsByWorker
		}
		crowd[i].start(t)
	}
	acknowledged, kills, stops := map[string]int{}, 0, 0
	deadline := time.After(2 * patience)
	for next := 1; ; {
		total := 0
		for _, c := range crowd {
			c.listen(t, acknowledged)
			total += c.acknowledged
		}
		if total == processes*workersPerProcess*incrementsByWorker {
			break
		}
		if total >= next*25 { // whoever it is, and in the middle of whatever
			victim := crowd[next%processes]
			switch {
			case victim.paused || victim.done():
			case next%3 == 0:
				victim.restart(t, acknowledged)
				kills++
			default:
				victim.stopFor(t, 2*contentionLease)
				stops++
			}
			next++
		}
		select {
		case <-deadline:
			t.Fatalf("%d increments after %v", total, 2*patience)
		case <-time.After(5 * time.Millisecond):
		}
	}

	stale := 0
	for _, c := range crowd {
		stale += c.stale
	}
	for _, key := range counterKeys {
		written := checkJournal(t, client, key)
		if written < acknowledged[key] || written > acknowledged[key]+kills*workersPerProcess {
			t.Errorf("%s: %d increments were written, %d acknowledged", key, written, acknowledged[key])
		}
		t.Logf("%s: %d increments written, %d acknowledged", key, written, acknowledged[key])
	}
	t.Logf("%d processes were killed, %d stopped; %d reads or writes came too late", kills, stops, stale)
}

// checkJournal returns how many increments were written, once it is sure that none was lost.
func checkJournal(t *testing.T, client *redis.Client, key string) int {
	t.Helper()
	journal, err := client.LRange(t.Context(), key+" journal", 0, -1).Result()
	succeed(t, err)
	highest := uint64(0)
	for i, entry := range journal {
		fenceText, value, _ := strings.Cut(entry, " ")
		fence, err := strconv.ParseUint(fenceText, 10, 64)
		succeed(t, err)
		if value != strconv.Itoa(i+1) || fence <= highest {
			t.Fatalf("%s: after %d increments, the value %s was written under fence %d, the highest being %d", key, i, value, fence, highest)
		}
		highest = fence
	}
	if value := client.HGet(t.Context(), key, "value").Val(); value != strconv.Itoa(len(journal)) {
		t.Fatalf("%s is %s after %d increments", key, value, len(journal))
	}
	return len(journal)
}

var counterKeys = [...]string{"counter A", "counter B"}

// crew is a process and those that take its place.
type crew struct {
	*child
	task         counterTask
	acknowledged int
	stale        int
	paused       bool
	resumeAt     time.Time
}

func (c *crew) start(t *testing.T) {
	t.Helper()
	c.child = startChild(t, "counter", c.task)
}

func (c *crew) done() bool {
	left := 0
	for _, increments := range c.task.Left {
		left += increments
	}
	return left == 0
}

// listen counts what the process has told since, and lets it go on when it was stopped for long enough.
func (c *crew) listen(t *testing.T, acknowledged map[string]int) {
	t.Helper()
	if c.paused && time.Now().After(c.resumeAt) {
		c.resume(t)
		c.paused = false
	}
	for {
		select {
		case line, ok := <-c.told:
			if !ok {
				if !c.done() {
					t.Fatal("a process has ended by itself")
				}
				return
			}
			c.note(t, line, acknowledged)
		default:
			return
		}
	}
}

func (c *crew) note(t *testing.T, line string, acknowledged map[string]int) {
	t.Helper()
	var worker, key int
	if line == "stale" {
		c.stale++
	} else if _, err := fmt.Sscanf(line, "added %d %d", &worker, &key); err != nil {
		t.Fatalf("a process told %q", line)
	} else {
		acknowledged[counterKeys[key]]++
		c.acknowledged++
		c.task.Left[worker]--
	}
}

// restart kills the process, and starts another that does what it has left.
func (c *crew) restart(t *testing.T, acknowledged map[string]int) {
	t.Helper()
	_ = c.command.Process.Kill()
	for line := range c.told {
		c.note(t, line, acknowledged)
	}
	c.start(t)
}

// stopFor stops the process for a while.
func (c *crew) stopFor(t *testing.T, while time.Duration) {
	t.Helper()
	c.pause(t)
	c.paused, c.resumeAt = true, time.Now().Add(while)
}

// counterTask is what a child is to add.
type counterTask struct {
	Addr string
	Left [workersPerProcess]int // increments, by worker
}

// playCounter adds, and tells of each increment.
func playCounter(text []byte, _ <-chan string, tell func(string, ...any)) {
	task := decode[counterTask](text)
	client := redis.NewClient(&redis.Options{Addr: task.Addr})
	guard, err := dedupe.Serialize(redisstore.New(client), "counter", nil,
		dedupe.WithLease(contentionLease), dedupe.WithWait(patience))
	must(err)
	var workers sync.WaitGroup
	for worker, left := range task.Left {
		workers.Go(func() {
			for left > 0 {
				key := (left + worker) % len(counterKeys)
				switch err := increment(guard, client, counterKeys[key]); {
				case err == nil:
					tell("added %d %d", worker, key)
					left--
				case errors.Is(err, errStale):
					tell("stale")
				case !errors.Is(err, dedupe.ErrConflict) && !errors.Is(err, dedupe.ErrStoreUnavailable):
					must(err)
				}
			}
		})
	}
	workers.Wait()
}

// increment adds one to a counter, in two steps.
func increment(guard *dedupe.Guard, client *redis.Client, counter string) error {
	return guard.Run(context.Background(), counter, func(ctx context.Context) error {
		lease, _ := guard.Lease(ctx)
		// Not ctx: a careless handler goes on when its lease is lost, and the fence has to stop it.
		value, err := readCounter.Run(context.Background(), client, []string{counter}, lease.Fence()).Int()
		if err == nil && value < 0 {
			err = errStale
		}
		if err != nil {
			return err
		}
		for range 40 { // the work, long enough for most of what happens to happen here
			if err := client.Ping(context.Background()).Err(); err != nil {
				return err
			}
		}
		written, err := writeCounter.Run(context.Background(), client, []string{counter, counter + " journal"}, lease.Fence(), value+1).Int()
		if err == nil && written < 0 {
			err = errStale
		}
		return err
	})
}
