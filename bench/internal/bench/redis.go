package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/bench/internal/statistics"
)

// service is the Redis under measurement: one server or the masters of a cluster. What it asks the
// servers for itself is outside the measured stretches, or too little to show.
type service struct {
	addresses []string
	clients   []*redis.Client // of each node
}

func newService(addresses []string) *service {
	s := &service{addresses: addresses}
	for _, address := range addresses {
		s.clients = append(s.clients, redis.NewClient(&redis.Options{Addr: address}))
	}
	return s
}

func (s *service) close() error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// info is what all servers together have used.
type info struct {
	commands int64         // executed, those inside scripts counted
	cpu      time.Duration // of the main threads
	memory   int64         // but for connections
	keys     int64
}

func (s *service) info(ctx context.Context) (total info, err error) {
	for _, c := range s.clients {
		text, err := c.Info(ctx, "all").Result()
		if err != nil {
			return total, fmt.Errorf("INFO: %w", err)
		}
		fields := make(map[string]string)
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				fields[name] = value
			}
		}
		number := func(name string) float64 {
			n, parseErr := strconv.ParseFloat(fields[name], 64)
			if parseErr != nil {
				err = errors.Join(err, fmt.Errorf("INFO: %s: %w", name, parseErr))
			}
			return n
		}
		total.commands += int64(number("total_commands_processed"))
		total.cpu += time.Duration((number("used_cpu_user_main_thread") + number("used_cpu_sys_main_thread")) * float64(time.Second))
		total.memory += int64(number("used_memory") - number("mem_clients_normal"))
		if err != nil {
			return total, err
		}
		keys, err := c.DBSize(ctx).Result()
		if err != nil {
			return total, fmt.Errorf("DBSIZE: %w", err)
		}
		total.keys += keys
	}
	return total, nil
}

func (s *service) flush(ctx context.Context) error {
	for _, c := range s.clients {
		if err := c.FlushAll(ctx).Err(); err != nil {
			return fmt.Errorf("FLUSHALL: %w", err)
		}
	}
	return nil
}

const pings = 101

// roundTrip returns the median of plain round trips on an idle machine, with a pause before each: after
// one, processors have to wake up, here as between two holders.
func (s *service) roundTrip(ctx context.Context, pause time.Duration) (time.Duration, error) {
	var times []float64
	for range pings {
		time.Sleep(pause)
		begun := time.Now()
		if err := s.clients[0].Ping(ctx).Err(); err != nil {
			return 0, fmt.Errorf("PING: %w", err)
		}
		times = append(times, float64(time.Since(begun)))
	}
	return statistics.Summarize(times).P50, nil
}
