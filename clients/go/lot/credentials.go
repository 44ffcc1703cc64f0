package lot

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// WithTLS encrypts the connection. RootCAs of the config has the certificates that vouch for the
// server's, Certificates what is shown to a server that requires one. A nil config trusts the
// authorities of the system.
func WithTLS(config *tls.Config) Option {
	return WithDialOptions(grpc.WithTransportCredentials(credentials.NewTLS(config)))
}

// WithAPIKey sends a key with each call. Without TLS, Dial accepts it only for an address of this
// machine.
func WithAPIKey(key string) Option {
	return func(dial *dialing) { dial.key = key }
}

// WithPlaintextKey sends the API key without TLS beyond this machine too, where others may read it.
func WithPlaintextKey() Option {
	return func(dial *dialing) { dial.plaintextKey = true }
}

// credentials are the options that send the key.
func (d *dialing) credentials(address string) ([]grpc.DialOption, error) {
	if d.key == "" {
		return nil, nil
	}
	if strings.ContainsFunc(d.key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("lot: not an API key: a key is one word of ASCII letters")
	}
	secure := !d.plaintextKey && !isLoopback(address)
	return []grpc.DialOption{grpc.WithPerRPCCredentials(bearer{d.key, secure})}, nil
}

// unsent explains why Dial failed, if gRPC refused to send the key.
func unsent(err error, address string) error {
	if !strings.Contains(err.Error(), "require transport level security") {
		return err
	}
	return fmt.Errorf("lot: the API key is not sent to %s unencrypted: use WithTLS, or WithPlaintextKey "+
		"if nobody can listen on the network path: %w", address, err)
}

// isLoopback tells whether only this machine is reached; a name other than localhost may be any.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address[strings.LastIndex(address, "/")+1:])
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// bearer sends an API key; gRPC itself refuses it on a connection that is not as secure as it has to be.
type bearer struct {
	key    string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.key}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }
