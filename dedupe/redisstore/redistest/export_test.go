package redistest

import (
	"net"
	"strconv"
)

// OfferPorts has a server try the ports of these addresses first. The ones that
// were tried are removed.
func OfferPorts(addrs *[]string) Option {
	return func(s *setup) {
		s.port = func() (int, error) {
			if len(*addrs) == 0 {
				return freePort()
			}
			_, port, err := net.SplitHostPort((*addrs)[0])
			if err != nil {
				return 0, err
			}
			*addrs = (*addrs)[1:]
			return strconv.Atoi(port)
		}
	}
}
