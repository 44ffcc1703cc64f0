package lot_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lot-grpc/lot-grpc/clients/go/lot"
	lotv1 "github.com/lot-grpc/lot-grpc/clients/go/lot/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

const key = "lot_k1_secret"

// given is a variable that `make test-go` sets.
func given(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Skip(name + " names no server with TLS; `make test-go` starts one")
	}
	return value
}

// trusting is a config that trusts the authorities in a file of the folder of the tests.
func trusting(t *testing.T, file string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(given(t, "LOT_TEST_TLS_FOLDER"), file))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots}
}

// saving is the error of a call to a server with TLS.
func saving(t *testing.T, address string, config *tls.Config) error {
	t.Helper()
	client, err := lot.Dial(address, lot.WithNamespace("test-"+rand.Text()), lot.WithTLS(config))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = client.Patterns.SavePattern(ctx, &lotv1.SavePatternRequest{Pattern: &lotv1.Pattern{Task: "t"}})
	if ctx.Err() != nil {
		t.Errorf("it was tried until the deadline: %v", err)
	}
	return err
}

func TestServerWithTLSIsUsedLikeAny(t *testing.T) {
	if err := saving(t, given(t, "LOT_TEST_TLS_ADDRESS"), trusting(t, "ca.pem")); err != nil {
		t.Error(err)
	}
}

func TestServerThatIsNotTrustedIsRefusedAtOnce(t *testing.T) {
	address := given(t, "LOT_TEST_TLS_ADDRESS")
	elsewhere := trusting(t, "ca.pem")
	elsewhere.ServerName = "elsewhere.test"
	for _, config := range []*tls.Config{trusting(t, "stranger.pem"), elsewhere, nil} {
		err := saving(t, address, config)
		if failure := lot.ErrorOf(err); failure.Code != codes.Unavailable ||
			!strings.Contains(failure.Message, "failed to verify certificate") {
			t.Errorf("got %v", err)
		}
	}
}

func TestClientCertificateIsShown(t *testing.T) {
	address, folder := given(t, "LOT_TEST_TLS_CLIENT_ADDRESS"), given(t, "LOT_TEST_TLS_FOLDER")
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "agent.pem"), filepath.Join(folder, "agent.key"))
	if err != nil {
		t.Fatal(err)
	}
	config := trusting(t, "ca.pem")
	config.Certificates = []tls.Certificate{own}
	if err := saving(t, address, config); err != nil {
		t.Error(err)
	}
	client, err := lot.Dial(address, lot.WithTLS(trusting(t, "ca.pem")))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := client.Admin.ListNamespaces(ctx, &lotv1.ListNamespacesRequest{}); err == nil {
		t.Error("it was let in without a certificate")
	}
}

// keeping is a server that keeps the keys it is sent.
type keeping struct {
	lotv1.UnimplementedAdminServiceServer
	lotv1.UnimplementedMemoryServiceServer
	mutex sync.Mutex
	keys  []string
}

func (k *keeping) keep(ctx context.Context) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	sent, _ := metadata.FromIncomingContext(ctx)
	k.keys = append(k.keys, strings.Join(sent.Get("authorization"), ","))
}

func (k *keeping) ListNamespaces(ctx context.Context, _ *lotv1.ListNamespacesRequest) (*lotv1.ListNamespacesResponse, error) {
	k.keep(ctx)
	return &lotv1.ListNamespacesResponse{}, nil
}

func (k *keeping) WatchChanges(_ *lotv1.WatchChangesRequest, stream grpc.ServerStreamingServer[lotv1.WatchChangesResponse]) error {
	k.keep(stream.Context())
	return nil
}

func TestKeyIsSentWithEachCall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, kept := grpc.NewServer(), &keeping{}
	lotv1.RegisterAdminServiceServer(server, kept)
	lotv1.RegisterMemoryServiceServer(server, kept)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client, err := lot.Dial(listener.Addr().String(), lot.WithAPIKey(key))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	must(client.Admin.ListNamespaces(t.Context(), &lotv1.ListNamespacesRequest{}))(t)
	stream := must(client.Memories.WatchChanges(t.Context(), &lotv1.WatchChangesRequest{}))(t)
	_, _ = stream.Recv()
	if want := []string{"Bearer " + key, "Bearer " + key}; !slices.Equal(kept.keys, want) {
		t.Errorf("got %v", kept.keys)
	}
}

func TestKeyIsNotSentUnencryptedBeyondLoopback(t *testing.T) {
	for _, address := range []string{"lot.example.test:50051", "10.0.0.7:50051", "[fe80::1]:50051", "dns:///lot:1"} {
		_, err := lot.Dial(address, lot.WithAPIKey(key))
		if err == nil || !strings.Contains(err.Error(), "is not sent to "+address+" unencrypted") {
			t.Errorf("%s: got %v", address, err)
		} else if strings.Contains(err.Error(), key) {
			t.Error("the key is in the error")
		}
		for _, option := range []lot.Option{lot.WithPlaintextKey(), lot.WithTLS(nil)} {
			client := must(lot.Dial(address, lot.WithAPIKey(key), option))(t)
			_ = client.Close()
		}
	}
	for _, address := range []string{"localhost:1", "127.9.9.9:1", "[::1]:1", "dns:///localhost:1"} {
		client := must(lot.Dial(address, lot.WithAPIKey(key)))(t)
		_ = client.Close()
	}
}

func TestWhatIsNoKeyIsRefusedAndNotShown(t *testing.T) {
	for _, text := range []string{"two words", "schlüssel", "line\nbreak"} {
		_, err := lot.Dial("127.0.0.1:1", lot.WithAPIKey(text))
		if err == nil || !strings.Contains(err.Error(), "not an API key") || strings.Contains(err.Error(), text) {
			t.Errorf("got %v", err)
		}
	}
}
