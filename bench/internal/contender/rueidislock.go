package contender

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

var rueidislockContender = Contender{
	Name:   "rueidislock",
	Module: "github.com/redis/rueidis",
	Configuration: "NewLocker with KeyMajority 1 and NoLoopTracking, as its README recommends for one server from 7.0.5 on; else its defaults " +
		"(validity 5 s, renewed every 2.5 s, client-side caching tells waiters). Its own client multiplexes all commands on one connection",
	Open: func(s Setting) (Lock, error) {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{
				InitAddress: s.Servers,
				DialCtxFn: func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
					return s.Dial(ctx, "tcp", address)
				},
			},
			KeyMajority:    1,
			NoLoopTracking: true,
			KeyValidity:    s.Lease,
		})
		if err != nil {
			return nil, err
		}
		return &rueidislockLock{locker}, nil
	},
}

type rueidislockLock struct{ locker rueidislock.Locker }

func (l *rueidislockLock) Run(ctx context.Context, key string, work func(context.Context)) error {
	held, release, err := l.locker.WithContext(ctx, key)
	if err != nil {
		return err
	}
	work(held)
	release() // returns when the key is deleted
	return nil
}

func (l *rueidislockLock) Close() error {
	l.locker.Close()
	return nil
}
