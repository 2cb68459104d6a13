use super::*;

fn folder(path: &str, children: usize, marked: bool) -> FolderNow {
    FolderNow { path: path.into(), folder: Ref::new("Folder", path), children, marked }
}

fn made() -> FoldersMade {
    FoldersMade { folders: vec!["/dc/vm/team".into(), "/dc/vm/team/ocp".into()], tagged: vec!["/dc/vm/team/ocp".into()] }
}

fn back(folders: Vec<FolderNow>) -> Back {
    let owner = Tag { id: "t".into(), name: "lab-x".into(), category: "c".into() };
    decide(&made(), &Now { folders, owner: Some(owner) })
}

#[test]
fn folders_go_one_after_the_other_the_innermost_first_and_unmarked() {
    let first = back(vec![folder("/dc/vm/team", 1, false), folder("/dc/vm/team/ocp", 0, true)]);
    assert_eq!(first.detach.unwrap().1, [Ref::new("Folder", "/dc/vm/team/ocp")]);
    let second = back(vec![folder("/dc/vm/team", 1, false), folder("/dc/vm/team/ocp", 0, false)]);
    assert_eq!((second.detach, second.delete.unwrap().0), (None, "/dc/vm/team/ocp".to_owned()));
    let third = back(vec![folder("/dc/vm/team", 0, false)]);
    assert_eq!(third.delete.unwrap().0, "/dc/vm/team");
    assert_eq!(back(Vec::new()), Back::default());
}

#[test]
fn a_folder_that_holds_something_is_left_and_listed() {
    let left = back(vec![folder("/dc/vm/team", 1, false), folder("/dc/vm/team/ocp", 2, false)]);
    assert_eq!((left.detach, left.delete), (None, None));
    assert_eq!(left.left, ["folder /dc/vm/team holds 1 things", "folder /dc/vm/team/ocp holds 2 things"]);
}

#[test]
fn a_folder_that_was_there_before_loses_only_our_mark() {
    let made = FoldersMade { folders: Vec::new(), tagged: vec!["/dc/vm/theirs".into()] };
    let owner = Tag { id: "t".into(), name: "lab-x".into(), category: "c".into() };
    let now = |marked| Now { folders: vec![folder("/dc/vm/theirs", 0, marked)], owner: Some(owner.clone()) };
    assert_eq!(decide(&made, &now(true)).detach.unwrap().1.len(), 1);
    assert_eq!(decide(&made, &now(false)), Back::default());
}
