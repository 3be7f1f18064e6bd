package grpcmw

import (
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// method is what is known of a method beforehand.
type method struct {
	name       string                        // in full: "/bank.v1.Bank/Withdraw"
	descriptor protoreflect.MethodDescriptor // nil if it is not registered
	safe       bool
}

// findMethod asks the registry of generated code.
func findMethod(name string) *method {
	m := &method{name: name}
	full := strings.Replace(strings.TrimPrefix(name, "/"), "/", ".", 1)
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(full))
	if err != nil {
		return m
	}
	if descriptor, ok := found.(protoreflect.MethodDescriptor); ok {
		options, _ := descriptor.Options().(*descriptorpb.MethodOptions)
		m.descriptor = descriptor
		m.safe = options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
	}
	return m
}

func (m *method) unary() bool {
	return m.descriptor != nil && !m.descriptor.IsStreamingClient() && !m.descriptor.IsStreamingServer()
}

func (m *method) streaming() bool { return m.descriptor != nil && !m.unary() }

// returns reports whether the method may return messages of this name.
func (m *method) returns(name protoreflect.FullName) bool {
	return m.descriptor == nil || m.descriptor.Output().FullName() == name
}

func serviceRegistered(name string) bool {
	_, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	return err == nil
}

// methodCache keeps the methods that are registered. Others it forgets: clients can make up their
// names.
type methodCache struct{ known sync.Map } // name to *method

func (c *methodCache) find(name string) *method {
	if m, known := c.known.Load(name); known {
		return m.(*method) //nolint:errcheck // nothing else is in there
	}
	m := findMethod(name)
	if m.descriptor != nil {
		c.known.Store(name, m)
	}
	return m
}

// typeCache keeps the types of messages that handlers returned: not all of them are registered.
type typeCache struct{ seen sync.Map } // protoreflect.FullName to protoreflect.MessageType

func (c *typeCache) add(message protoreflect.Message) {
	name := message.Descriptor().FullName()
	if _, seen := c.seen.Load(name); !seen {
		c.seen.Store(name, message.Type())
	}
}

// find returns the type in which m returns messages of this name.
func (c *typeCache) find(m *method, name protoreflect.FullName, others protoregistry.MessageTypeResolver) (protoreflect.MessageType, error) {
	if !m.returns(name) {
		return nil, fmt.Errorf("grpcmw: the kept answer is a %s, and the method returns a %s", name, m.descriptor.Output().FullName())
	}
	if found, seen := c.seen.Load(name); seen {
		return found.(protoreflect.MessageType), nil //nolint:errcheck // nothing else is in there
	}
	found, err := others.FindMessageByName(name)
	if err != nil {
		return nil, fmt.Errorf("grpcmw: the kept answer is a %s: %w", name, err)
	}
	return found, nil
}
