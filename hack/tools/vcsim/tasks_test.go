package main

import (
	"errors"
	"testing"

	vimfault "github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func TestASlowTaskRunsAndThenDoesTheWork(t *testing.T) {
	s := startTest(t)
	s.fault("a", fault{Kind: "task", Method: "CloneVM_Task", Milliseconds: 50})
	vm, err := s.clone(s.login("a"), "a", "slow", nil)
	s.must(err)
	name, err := vm.ObjectName(s.context())
	s.must(err)
	if name != "slow" {
		t.Errorf("the clone is named %q", name)
	}
}

func TestATaskThatTakesForEverIsRunningUntilItIsCancelled(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	s.fault("a", fault{Kind: "task", Method: "Destroy_Task", Milliseconds: 6_000_000})
	folder := s.vc("a").find("Folder", "lab-x7k2p")[0].Reference()
	running, err := object.NewFolder(client.Client, folder).Destroy(s.context())
	s.must(err)
	var seen mo.Task
	s.must(running.Properties(s.context(), running.Reference(), []string{"info"}, &seen))
	if seen.Info.State != types.TaskInfoStateRunning || *seen.Info.Entity != folder || seen.Info.Key != running.Reference().Value {
		t.Fatalf("task: %+v", seen.Info)
	}
	s.must(running.Cancel(s.context()))
	if err := running.Wait(s.context()); !vimfault.Is(err, &types.RequestCanceled{}) {
		t.Fatalf("got %v", err)
	}
	if len(s.vc("a").find("Folder", "lab-x7k2p")) != 1 {
		t.Error("the work was done all the same")
	}
}

func TestAFailingTaskEndsWithItsErrorAndDoesNothing(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	s.fault("a", fault{Kind: "task", Method: "CloneVM_Task", Error: "InUse"})
	_, err := s.clone(client, "a", "never", nil)
	var failed task.Error
	if !errors.As(err, &failed) || !vimfault.Is(err, &types.ResourceInUse{}) {
		t.Fatalf("got %T %v", err, err)
	}
	if found := s.vc("a").find("VirtualMachine", "never"); len(found) != 0 {
		t.Error("the clone was made all the same")
	}
}
