// Package lot connects to a lot-grpc server and decodes its errors. The messages and services are in
// the package lotv1 below it.
package lot

import (
	"math"
	"time"

	lotv1 "github.com/lot-grpc/lot-grpc/clients/go/lot/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Client has the services of a server over one connection. It is safe for concurrent use.
//
// Unary calls that fail temporarily are retried until the deadline of their context, or for 30 s if it
// has none: the server is unreachable, restarting, or says how long to wait. Retried are reads, and
// writes with a RequestId; the client generates one if the caller set none. Other writes are retried
// only after OVERLOADED, which is sent before anything is done. Streams are not retried.
//
// If a call that failed may have been carried out, and the caller repeats it within 10 minutes, it gets
// the same RequestId, so it is done only once.
type Client struct {
	Patterns lotv1.PatternServiceClient
	Episodes lotv1.EpisodeServiceClient
	Memories lotv1.MemoryServiceClient
	Learning lotv1.LearningServiceClient
	Admin    lotv1.AdminServiceClient

	conn *grpc.ClientConn
}

// Option changes how Dial connects.
type Option func(*dialing)

// dialing is what Dial collects from its options.
type dialing struct {
	options      []grpc.DialOption
	key          string
	plaintextKey bool
}

// WithNamespace sets the tenant of all calls that name none. Without it they go to "default".
func WithNamespace(namespace string) Option {
	return WithDialOptions(
		grpc.WithChainUnaryInterceptor(unaryIn(namespace)),
		grpc.WithChainStreamInterceptor(streamIn(namespace)),
	)
}

// WithDialOptions passes options on to gRPC.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(dial *dialing) { dial.options = append(dial.options, options...) }
}

// Dial makes a client of the server at address, for example "127.0.0.1:50051". It connects with the
// first call, so a server that is not there is that call's error. It fails for an API key that is
// none, or would be sent unencrypted.
func Dial(address string, options ...Option) (*Client, error) {
	dial := dialing{options: []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		grpc.WithChainUnaryInterceptor(identifying(), repeating),
		// Reconnect to a restarted server within a second or two, not gRPC's two minutes.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: firstDelay, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
		// A server whose machine is gone is noticed within a minute of an open call.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second}),
	}}
	for _, option := range options {
		option(&dial)
	}
	key, err := dial.credentials(address)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(address, append(dial.options, key...)...)
	if err != nil {
		return nil, unsent(err, address)
	}
	return &Client{
		Patterns: lotv1.NewPatternServiceClient(conn),
		Episodes: lotv1.NewEpisodeServiceClient(conn),
		Memories: lotv1.NewMemoryServiceClient(conn),
		Learning: lotv1.NewLearningServiceClient(conn),
		Admin:    lotv1.NewAdminServiceClient(conn),
		conn:     conn,
	}, nil
}

// Close closes the connection. Running calls fail with codes.Canceled.
func (c *Client) Close() error { return c.conn.Close() }
