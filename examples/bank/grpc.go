package main

import (
	"context"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/examples/bank/bankpb"
	"github.com/interlock-go/interlock/grpcmw"
)

// newGRPC returns a server of bank.v1.Bank behind the same guards, with reflection for clients such as
// grpcurl. The guards come first: what they keep is what has become of a handler's error.
func (b *bank) newGRPC() (*grpc.Server, error) {
	guarded, err := grpcmw.Config{Keep: keepCode}.Unary(grpcmw.Methods{
		bankpb.Bank_Withdraw_FullMethodName: b.guards.withdraw,
		bankpb.Bank_Transfer_FullMethodName: b.guards.transfer,
	})
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(guarded, b.problemStatus),
		grpc.MaxRecvMsgSize(maxBody),
		// A connection that has not said yet what it wants holds up the end of the server.
		grpc.ConnectionTimeout(10*time.Second),
	)
	bankpb.RegisterBankServer(server, service{bank: b})
	reflection.Register(server)
	return server, nil
}

// problemStatus turns the errors of handlers into what clients are told.
func (b *bank) problemStatus(ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, message)
	if err != nil {
		return nil, b.problem(info.FullMethod, err).status().Err()
	}
	return response, nil
}

// status returns the problem in gRPC's terms, with the details that the guards' refusals have too.
func (p *problem) status() *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: p.reason(), Domain: "github.com/interlock-go/interlock/examples/bank"}}
	if p.Retryable {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	s, err := status.New(p.code, p.String()).WithDetails(details...)
	if err != nil {
		panic(err) // no problem has the code OK, and all texts are UTF-8
	}
	return s
}

// service is the bank as bank.v1.Bank.
type service struct {
	bankpb.UnimplementedBankServer

	bank *bank
}

// GetAccount implements bankpb.BankServer.
func (s service) GetAccount(ctx context.Context, r *bankpb.GetAccountRequest) (*bankpb.Account, error) {
	a, err := s.bank.account(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	return &bankpb.Account{Account: a.ID, Balance: a.Balance, Executions: a.Executions}, nil
}

// Withdraw implements bankpb.BankServer.
func (s service) Withdraw(ctx context.Context, r *bankpb.WithdrawRequest) (*bankpb.Receipt, error) {
	return receiptMessage(s.bank.withdraw(ctx, r.GetId(), r.GetAmount()))
}

// Transfer implements bankpb.BankServer.
func (s service) Transfer(ctx context.Context, r *bankpb.TransferRequest) (*bankpb.Receipt, error) {
	return receiptMessage(s.bank.transfer(ctx, r.GetId(), r.GetTo(), r.GetAmount()))
}

func receiptMessage(r receipt, err error) (*bankpb.Receipt, error) {
	if err != nil {
		return nil, err
	}
	return &bankpb.Receipt{Transaction: r.Transaction, Account: r.Account, Balance: r.Balance}, nil
}
