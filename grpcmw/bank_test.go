package grpcmw_test

import (
	"fmt"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/timestamppb" // it is imported below
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// The service of the tests. What protoc would make of it is made when the tests start: its file and
// the types of its messages are registered as generated code does it.
const bankProto = `
	name: "bank/v1/bank.proto" package: "bank.v1" syntax: "proto3"
	message_type {
		name: "Transfer"
		field { name: "id" json_name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "to" json_name: "to" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "amount" json_name: "amount" number: 3 type: TYPE_INT64 label: LABEL_OPTIONAL }
		field { name: "tags" json_name: "tags" number: 4 type: TYPE_MESSAGE type_name: ".bank.v1.Transfer.TagsEntry" label: LABEL_REPEATED }
		nested_type {
			name: "TagsEntry" options { map_entry: true }
			field { name: "key" json_name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
			field { name: "value" json_name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		}
	}
	message_type {
		name: "Receipt"
		field { name: "run" json_name: "run" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
		field { name: "note" json_name: "note" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
	}
	service {
		name: "Bank"
		method { name: "Withdraw" input_type: ".bank.v1.Transfer" output_type: ".bank.v1.Receipt" }
		method { name: "Deposit" input_type: ".bank.v1.Transfer" output_type: ".bank.v1.Receipt" }
		method {
			name: "Look" input_type: ".bank.v1.Transfer" output_type: ".bank.v1.Receipt"
			options { idempotency_level: NO_SIDE_EFFECTS }
		}
		method {
			name: "Count" input_type: ".bank.v1.Transfer" output_type: ".bank.v1.Receipt"
			client_streaming: true server_streaming: true
		}
	}
	message_type {
		name: "Fields"
		field { name: "text" json_name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "raw" json_name: "raw" number: 2 type: TYPE_BYTES label: LABEL_OPTIONAL }
		field { name: "int32" json_name: "int32" number: 3 type: TYPE_INT32 label: LABEL_OPTIONAL }
		field { name: "sint32" json_name: "sint32" number: 4 type: TYPE_SINT32 label: LABEL_OPTIONAL }
		field { name: "sfixed32" json_name: "sfixed32" number: 5 type: TYPE_SFIXED32 label: LABEL_OPTIONAL }
		field { name: "int64" json_name: "int64" number: 6 type: TYPE_INT64 label: LABEL_OPTIONAL }
		field { name: "sint64" json_name: "sint64" number: 7 type: TYPE_SINT64 label: LABEL_OPTIONAL }
		field { name: "sfixed64" json_name: "sfixed64" number: 8 type: TYPE_SFIXED64 label: LABEL_OPTIONAL }
		field { name: "uint32" json_name: "uint32" number: 9 type: TYPE_UINT32 label: LABEL_OPTIONAL }
		field { name: "fixed32" json_name: "fixed32" number: 10 type: TYPE_FIXED32 label: LABEL_OPTIONAL }
		field { name: "uint64" json_name: "uint64" number: 11 type: TYPE_UINT64 label: LABEL_OPTIONAL }
		field { name: "fixed64" json_name: "fixed64" number: 12 type: TYPE_FIXED64 label: LABEL_OPTIONAL }
		field { name: "currency" json_name: "currency" number: 13 type: TYPE_ENUM type_name: ".bank.v1.Currency" label: LABEL_OPTIONAL }
		field { name: "flag" json_name: "flag" number: 14 type: TYPE_BOOL label: LABEL_OPTIONAL }
		field { name: "float" json_name: "float" number: 15 type: TYPE_FLOAT label: LABEL_OPTIONAL }
		field { name: "double" json_name: "double" number: 16 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
		field { name: "list" json_name: "list" number: 17 type: TYPE_STRING label: LABEL_REPEATED }
		field { name: "inner" json_name: "inner" number: 18 type: TYPE_MESSAGE type_name: ".bank.v1.Fields" label: LABEL_OPTIONAL }
		field { name: "inners" json_name: "inners" number: 19 type: TYPE_MESSAGE type_name: ".bank.v1.Fields" label: LABEL_REPEATED }
		field { name: "time" json_name: "time" number: 20 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
		field { name: "account_id" json_name: "accountId" number: 21 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "first" json_name: "second" number: 22 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "second" json_name: "third" number: 23 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "tags" json_name: "tags" number: 24 type: TYPE_MESSAGE type_name: ".bank.v1.Fields.TagsEntry" label: LABEL_REPEATED }
		field { name: "opt_int64" json_name: "optInt64" number: 30 type: TYPE_INT64 label: LABEL_OPTIONAL proto3_optional: true oneof_index: 1 }
		field { name: "opt_text" json_name: "optText" number: 31 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 2 }
		field { name: "opt_currency" json_name: "optCurrency" number: 32 type: TYPE_ENUM type_name: ".bank.v1.Currency" label: LABEL_OPTIONAL proto3_optional: true oneof_index: 3 }
		field { name: "opt_flag" json_name: "optFlag" number: 35 type: TYPE_BOOL label: LABEL_OPTIONAL proto3_optional: true oneof_index: 4 }
		field { name: "one_text" json_name: "oneText" number: 33 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
		field { name: "one_uint32" json_name: "oneUint32" number: 34 type: TYPE_UINT32 label: LABEL_OPTIONAL oneof_index: 0 }
		field { name: "w_text" json_name: "wText" number: 40 type: TYPE_MESSAGE type_name: ".google.protobuf.StringValue" label: LABEL_OPTIONAL }
		field { name: "w_raw" json_name: "wRaw" number: 41 type: TYPE_MESSAGE type_name: ".google.protobuf.BytesValue" label: LABEL_OPTIONAL }
		field { name: "w_int32" json_name: "wInt32" number: 42 type: TYPE_MESSAGE type_name: ".google.protobuf.Int32Value" label: LABEL_OPTIONAL }
		field { name: "w_int64" json_name: "wInt64" number: 43 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" label: LABEL_OPTIONAL }
		field { name: "w_uint32" json_name: "wUint32" number: 44 type: TYPE_MESSAGE type_name: ".google.protobuf.UInt32Value" label: LABEL_OPTIONAL }
		field { name: "w_uint64" json_name: "wUint64" number: 45 type: TYPE_MESSAGE type_name: ".google.protobuf.UInt64Value" label: LABEL_OPTIONAL }
		field { name: "w_flag" json_name: "wFlag" number: 46 type: TYPE_MESSAGE type_name: ".google.protobuf.BoolValue" label: LABEL_OPTIONAL }
		field { name: "w_float" json_name: "wFloat" number: 47 type: TYPE_MESSAGE type_name: ".google.protobuf.FloatValue" label: LABEL_OPTIONAL }
		field { name: "w_double" json_name: "wDouble" number: 48 type: TYPE_MESSAGE type_name: ".google.protobuf.DoubleValue" label: LABEL_OPTIONAL }
		oneof_decl { name: "one" } oneof_decl { name: "_opt_int64" } oneof_decl { name: "_opt_text" }
		oneof_decl { name: "_opt_currency" } oneof_decl { name: "_opt_flag" }
		nested_type {
			name: "TagsEntry" options { map_entry: true }
			field { name: "key" json_name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
			field { name: "value" json_name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		}
	}
	enum_type {
		name: "Currency"
		value { name: "CURRENCY_UNSPECIFIED" number: 0 }
		value { name: "EUR" number: 1 }
		value { name: "DEBT" number: -1 }
	}
	dependency: "google/protobuf/wrappers.proto"
	dependency: "google/protobuf/timestamp.proto"
`

// bankFile is the service's file.
var bankFile = register(bankProto)

func register(text string) protoreflect.FileDescriptor {
	file := newFile(text)
	check(protoregistry.GlobalFiles.RegisterFile(file))
	messages := file.Messages()
	for i := range messages.Len() {
		check(protoregistry.GlobalTypes.RegisterMessage(dynamicpb.NewMessageType(messages.Get(i))))
	}
	return file
}

func newFile(text string) protoreflect.FileDescriptor {
	var described descriptorpb.FileDescriptorProto
	check(prototext.Unmarshal([]byte(text), &described))
	file, err := protodesc.NewFile(&described, protoregistry.GlobalFiles)
	check(err)
	return file
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// newMessage returns a message of the file in the text format.
func newMessage(name protoreflect.Name, text string) *dynamicpb.Message {
	message := dynamicpb.NewMessage(bankFile.Messages().ByName(name))
	check(prototext.Unmarshal([]byte(text), message))
	return message
}

// transfer returns a request.
func transfer(id, to string) *dynamicpb.Message {
	return newMessage("Transfer", fmt.Sprintf("id: %q to: %q amount: 10", id, to))
}

// receipt returns a response.
func receipt(run int64) *dynamicpb.Message {
	return newMessage("Receipt", fmt.Sprintf("run: %d", run))
}

func runOf(message proto.Message) int64 {
	reflected := message.ProtoReflect()
	return reflected.Get(reflected.Descriptor().Fields().ByName("run")).Int()
}
