package main

import (
	"fmt"
	"html"
	"reflect"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// ownTask answers a ..._Task method with a task of our own that takes its time, shows progress, and only then does the
// work or fails. The simulator's own delays hold for the whole process and lock the object meanwhile.
func (v *vcenter) ownTask(c *call, f *fault) *answer {
	if !v.authenticated(c.http) {
		return nil // the simulator says so
	}
	method, err := simulator.UnmarshalBody(types.TypeFunc(), c.body)
	if err != nil || v.registry.Get(method.This) == nil {
		return nil
	}
	if refused := v.refused(c.callKey, method); refused != nil {
		return faultAnswer(refused, wordsFor("NoPermission"))
	}
	task := v.runningTask(method)
	go v.work(task, method, *f)
	name := html.EscapeString(method.Name)
	return soapAnswer(fmt.Sprintf(`<%sResponse xmlns="urn:vim25"><returnval type="Task">%s</returnval></%sResponse>`,
		name, task.Self.Value, name))
}

func (v *vcenter) runningTask(method *simulator.Method) *simulator.Task {
	now := time.Now()
	name := strings.TrimSuffix(method.Name, "_Task")
	task := new(simulator.Task)
	task.Info = types.TaskInfo{
		Name:          method.Name,
		DescriptionId: method.This.Type + "." + strings.ToLower(name[:1]) + name[1:],
		Entity:        &method.This,
		EntityName:    v.name(method.This),
		State:         types.TaskInfoStateRunning,
		Reason:        &types.TaskReasonUser{UserName: v.config.Username},
		QueueTime:     now,
		StartTime:     &now,
	}
	v.registry.Put(task)
	v.registry.AtomicUpdate(v.context(), task, []types.PropertyChange{
		{Name: "info.key", Val: task.Self.Value},
		{Name: "info.task", Val: task.Self},
	})
	return task
}

const progressSteps = 10

func (v *vcenter) work(task *simulator.Task, method *simulator.Method, f fault) {
	ctx := v.context()
	for step := range progressSteps {
		if f.Milliseconds == 0 {
			break
		}
		time.Sleep(time.Duration(f.Milliseconds) * time.Millisecond / progressSteps)
		progress := int32(min(99, (step+1)*100/progressSteps))
		if !v.update(ctx, task, types.PropertyChange{Name: "info.progress", Val: progress}) {
			return // cancelled
		}
	}
	var result types.AnyType
	var failure types.BaseMethodFault
	if f.Error != "" {
		failure, _ = newMethodFault(f.Error) // checked when the fault was made
		about(failure, method.This, f.Privilege)
	} else {
		result, failure = v.perform(ctx, method)
	}
	now := types.PropertyChange{Name: "info.completeTime", Val: time.Now()}
	if failure == nil {
		v.update(ctx, task, now,
			types.PropertyChange{Name: "info.result", Val: result},
			types.PropertyChange{Name: "info.state", Val: types.TaskInfoStateSuccess})
		return
	}
	message := f.Message
	if message == "" {
		message = wordsFor(reflect.TypeOf(failure).Elem().Name())
	}
	v.update(ctx, task, now,
		types.PropertyChange{Name: "info.error", Val: types.LocalizedMethodFault{Fault: failure, LocalizedMessage: message}},
		types.PropertyChange{Name: "info.state", Val: types.TaskInfoStateError})
}

// update changes a task unless it has ended.
func (v *vcenter) update(ctx *simulator.Context, task *simulator.Task, changes ...types.PropertyChange) bool {
	running := false
	v.registry.WithLock(ctx, task, func() {
		if running = task.Info.State == types.TaskInfoStateRunning; running {
			ctx.Update(task, changes)
		}
	})
	return running
}

// perform runs a task method as the simulator would and waits for its end.
func (v *vcenter) perform(ctx *simulator.Context, method *simulator.Method) (types.AnyType, types.BaseMethodFault) {
	handler := v.registry.Get(method.This)
	if handler == nil {
		return nil, &types.ManagedObjectNotFound{Obj: method.This}
	}
	if vm, ok := handler.(*simulator.VirtualMachine); ok {
		handler = &cloneSource{vm}
	}
	made := v.invoke(ctx, handler, method)
	if made == nil {
		return nil, &types.MethodNotFound{Receiver: method.This, Method: method.Name}
	}
	if made.Fault() != nil {
		return nil, made.Fault().VimFault().(types.BaseMethodFault)
	}
	ref := reflect.ValueOf(made).Elem().FieldByName("Res").Elem().FieldByName("Returnval").Interface()
	return outcome(ctx, ref.(types.ManagedObjectReference))
}

func (v *vcenter) invoke(ctx *simulator.Context, handler mo.Reference, method *simulator.Method) (made soap.HasFault) {
	name := strings.ToUpper(method.Name[:1]) + strings.Replace(method.Name[1:], "_Task", "Task", 1)
	function := reflect.ValueOf(handler).MethodByName(name)
	if !function.IsValid() {
		return nil
	}
	var arguments []reflect.Value
	if function.Type().NumIn() == 2 {
		arguments = append(arguments, reflect.ValueOf(ctx))
	}
	arguments = append(arguments, reflect.ValueOf(method.Body))
	v.registry.WithLock(ctx, handler, func() {
		made = function.Call(arguments)[0].Interface().(soap.HasFault)
	})
	return made
}
