package grpcmw

import (
	"encoding/base64"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// field returns the field that a dotted path names, as text, or what is wrong with it. Both are ""
// when there is none.
func field(message protoreflect.Message, path string) (text, problem string) {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		return param(message, name)
	}
	descriptor, problem := named(message, name)
	switch {
	case problem != "" || descriptor == nil:
		return "", problem
	case descriptor.Cardinality() == protoreflect.Repeated || descriptor.Message() == nil:
		return "", "is looked for in something that is not a message"
	case !message.Has(descriptor):
		return "", ""
	default:
		return field(message.Get(descriptor).Message(), rest)
	}
}

// param is field for a field of the message itself.
func param(message protoreflect.Message, name string) (text, problem string) {
	descriptor, problem := named(message, name)
	switch {
	case problem != "" || descriptor == nil:
		return "", problem
	case descriptor.Cardinality() == protoreflect.Repeated:
		return "", "is a list or a map"
	case descriptor.HasPresence() && !message.Has(descriptor):
		return "", ""
	}
	value := message.Get(descriptor)
	if inner := wrapped(descriptor); inner != nil {
		return scalar(inner.Kind(), value.Message().Get(inner))
	}
	text, problem = scalar(descriptor.Kind(), value)
	if text == "0" && !descriptor.HasPresence() && descriptor.Kind() != protoreflect.StringKind {
		return "", "is 0, which cannot be told from a field that is not set"
	}
	return text, problem
}

// named finds a field by its name in the .proto file or in JSON.
func named(message protoreflect.Message, name string) (found protoreflect.FieldDescriptor, problem string) {
	fields := message.Descriptor().Fields()
	found = fields.ByName(protoreflect.Name(name))
	inJSON := fields.ByJSONName(name)
	switch {
	case found == nil:
		return inJSON, ""
	case inJSON != nil && inJSON != found:
		return nil, "is the name of one field and the JSON name of another"
	default:
		return found, ""
	}
}

// wrapped returns the field that a wrapper of google.protobuf consists of, or nil.
func wrapped(descriptor protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	message := descriptor.Message()
	if message == nil {
		return nil
	}
	switch message.FullName() {
	case "google.protobuf.StringValue", "google.protobuf.BytesValue", "google.protobuf.BoolValue",
		"google.protobuf.Int32Value", "google.protobuf.Int64Value", "google.protobuf.UInt32Value",
		"google.protobuf.UInt64Value", "google.protobuf.FloatValue", "google.protobuf.DoubleValue":
		return message.Fields().ByNumber(1)
	default:
		return nil
	}
}

// scalar returns a value as the text of a key.
func scalar(kind protoreflect.Kind, value protoreflect.Value) (text, problem string) {
	switch kind {
	case protoreflect.StringKind:
		return value.String(), ""
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(value.Bytes()), ""
	case protoreflect.EnumKind:
		return strconv.FormatInt(int64(value.Enum()), 10), ""
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return strconv.FormatInt(value.Int(), 10), ""
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return strconv.FormatUint(value.Uint(), 10), ""
	default:
		return "", "is neither a string nor an integer"
	}
}
