package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-go/interlock/examples/recipes/accountspb"
	"github.com/interlock-go/interlock/examples/recipes/gateway"
)

// A gateway in front of a server with guards, and a request that is sent twice, then altered.
func ExampleOptions() {
	store := memstore.New() // in a service with replicas: redisstore.New(client)
	once, err := dedupe.Once(store, keyfuncs.Bearer(), keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	account, err := dedupe.Serialize(store, "account", keyfuncs.Param("id"))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{
		accountspb.Accounts_Withdraw_FullMethodName: {once, account},
	})))
	accountspb.RegisterAccountsServer(server, &accounts{})
	go server.Serve(listener)

	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	mux := runtime.NewServeMux(gateway.Options()...)
	if err := accountspb.RegisterAccountsHandler(context.Background(), mux, connection); err != nil {
		log.Fatal(err)
	}
	front := httptest.NewServer(mux)

	for _, body := range []string{`{"amount":"30"}`, `{"amount":"30"}`, `{"amount":"40"}`} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, front.URL+"/v1/accounts/7/withdraw", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer anna")
		r.Header.Set("Idempotency-Key", "k")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		fmt.Printf("%d replayed: %q\n", response.StatusCode, response.Header.Get("Idempotent-Replayed"))
	}
	front.Close()
	_ = connection.Close()
	server.Stop()
	// Output:
	// 200 replayed: ""
	// 200 replayed: "true"
	// 422 replayed: ""
}
