package connect_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"connectrpc.com/connect"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"

	"github.com/interlock-go/interlock/examples/recipes/accountspb"
	"github.com/interlock-go/interlock/examples/recipes/accountspb/accountspbconnect"
	recipe "github.com/interlock-go/interlock/examples/recipes/connect"
)

// A call that is sent twice, then altered.
func ExampleInterceptor() {
	store := memstore.New() // in a service with replicas: redisstore.New(client)
	once, err := dedupe.Once(store, keyfuncs.Bearer(), keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	account, err := dedupe.Serialize(store, "account", keyfuncs.Param("id"))
	if err != nil {
		log.Fatal(err)
	}
	guards, err := recipe.Interceptor(grpcmw.Methods{
		accountspbconnect.AccountsWithdrawProcedure: {once, account},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(accountspbconnect.NewAccountsHandler(&accounts{}, connect.WithInterceptors(guards)))
	server := httptest.NewServer(mux)
	defer server.Close()

	client := accountspbconnect.NewAccountsClient(server.Client(), server.URL)
	for _, amount := range []int64{30, 30, 40} {
		request := connect.NewRequest(&accountspb.WithdrawRequest{Id: "7", Amount: amount})
		request.Header().Set("Authorization", "Bearer anna")
		request.Header().Set("Idempotency-Key", "k")
		response, err := client.Withdraw(context.Background(), request)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("balance %d, replayed: %q\n", response.Msg.GetBalance(), response.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// balance 70, replayed: ""
	// balance 70, replayed: "true"
	// failed_precondition: the key was used before with another payload
}
