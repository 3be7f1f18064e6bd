package grpcmw

import (
	"errors"
	"maps"
	"slices"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// answer is what is kept of a call.
type answer struct {
	kind    kind
	name    protoreflect.FullName // of a response
	body    []byte                // the response or the status, marshalled
	header  metadata.MD
	trailer metadata.MD
}

// kind says what an answer is.
type kind byte

const (
	kindNothing  kind = iota // the handler returned nil and no error; gRPC sends an empty message
	kindResponse             // a message
	kindStatus               // an error
)

// replayedHeader tells a client that it got an earlier answer again.
const replayedHeader = "idempotent-replayed"

// answer returns what is to be kept of a response or an error, and whether it can be kept.
func (i *interceptor) answer(response any, s *status.Status) (a answer, ok bool) {
	var message proto.Message
	switch {
	case s.Code() != codes.OK:
		a.kind, message = kindStatus, s.Proto()
	case response == nil:
		return answer{kind: kindNothing}, true
	default:
		if message, ok = messageOf(response); !ok {
			return answer{}, false
		}
		reflected := message.ProtoReflect()
		a.kind, a.name = kindResponse, reflected.Descriptor().FullName()
		i.types.add(reflected)
	}
	if proto.Size(message) > i.config.MaxAnswer {
		return answer{}, false
	}
	var err error
	a.body, err = proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.Marshal(message)
	return a, err == nil
}

// restore is the inverse of answer. It trusts nothing: what is in an answer comes from a store.
func (i *interceptor) restore(m *method, a answer) (response any, failure, err error) {
	switch a.kind {
	case kindNothing:
		return nil, nil, nil
	case kindStatus:
		var s spb.Status
		if proto.Unmarshal(a.body, &s) != nil || s.GetCode() == int32(codes.OK) {
			return nil, nil, errAnswer
		}
		return nil, status.ErrorProto(&s), nil
	default:
		found, err := i.types.find(m, a.name, i.config.Types)
		if err != nil {
			return nil, nil, err
		}
		message := found.New().Interface()
		if err := proto.Unmarshal(a.body, message); err != nil {
			return nil, nil, err
		}
		return protoadapt.MessageV1Of(message), nil, nil // the very type, be it of the first Go API or the second
	}
}

// statusOf returns the status that gRPC sends for an error of a handler.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}

// answerVersion is the first byte of every encoded answer. A layout that older code would misread
// gets the next number.
const answerVersion = 1

// The fields of an encoded answer: version and kind, a byte each, then these in the wire format of
// protobuf. An element of metadata is its name and one value, each preceded by its length.
const (
	fieldName protowire.Number = iota + 1
	fieldHeader
	fieldTrailer
	fieldBody
)

func (a answer) encode() []byte {
	data := append(make([]byte, 0, 32+len(a.name)+len(a.body)), answerVersion, byte(a.kind))
	data = appendField(data, fieldName, string(a.name))
	data = appendMetadata(data, fieldHeader, a.header)
	data = appendMetadata(data, fieldTrailer, a.trailer)
	return appendField(data, fieldBody, a.body)
}

func appendField[T string | []byte](data []byte, number protowire.Number, value T) []byte {
	data = protowire.AppendTag(data, number, protowire.BytesType)
	data = protowire.AppendVarint(data, uint64(len(value)))
	return append(data, value...)
}

func appendMetadata(data []byte, number protowire.Number, md metadata.MD) []byte {
	for _, name := range slices.Sorted(maps.Keys(md)) {
		for _, value := range md[name] {
			element := protowire.AppendString(nil, name)
			data = appendField(data, number, protowire.AppendString(element, value))
		}
	}
	return data
}

var errAnswer = errors.New("grpcmw: the kept answer is damaged or of a newer version")

// decodeAnswer is the inverse of encode. It trusts nothing: the bytes come from a store.
func decodeAnswer(data []byte) (answer, error) {
	if len(data) < 2 || data[0] != answerVersion || data[1] > byte(kindStatus) {
		return answer{}, errAnswer
	}
	a := answer{kind: kind(data[1]), header: metadata.MD{}, trailer: metadata.MD{}}
	for data = data[2:]; ; {
		number, kind, size := protowire.ConsumeTag(data)
		if size < 0 || kind != protowire.BytesType {
			return answer{}, errAnswer
		}
		data = data[size:]
		value, size := protowire.ConsumeBytes(data)
		if size < 0 {
			return answer{}, errAnswer
		}
		data = data[size:]
		ok := false
		switch number {
		case fieldName:
			a.name, ok = protoreflect.FullName(value), true
		case fieldHeader:
			ok = addElement(a.header, value)
		case fieldTrailer:
			ok = addElement(a.trailer, value)
		case fieldBody: // the last one, there even if empty
			if len(data) == 0 {
				a.body = value
				return a, nil
			}
		default: // of a newer version
		}
		if !ok {
			return answer{}, errAnswer
		}
	}
}

// addElement adds an encoded element to md, and reports whether it could be read.
func addElement(md metadata.MD, element []byte) bool {
	name, size := protowire.ConsumeString(element)
	if size < 0 {
		return false
	}
	value, rest := protowire.ConsumeString(element[size:])
	if rest < 0 || size+rest != len(element) {
		return false
	}
	md.Append(name, value)
	return true
}
