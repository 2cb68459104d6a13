//! The documents: their links lead somewhere, and what they tell the reader to type works.
//!
//! A block of commands says in its first line where it can be run: `sh` anywhere, `sh native` where a lab of that shape runs,
//! `sh by-hand` only by somebody who has the time, or the programs, that a test does not have.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command_line::Home;
use crate::support::command::{self, Output};
use crate::support::lab::Lab;
use crate::support::suite::TestResult;

fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// README.md and its like, and everything in docs, as paths from the root.
fn documents() -> TestResult<Vec<String>> {
    let mut found = Vec::new();
    for folder in ["", "docs/"] {
        for entry in fs::read_dir(root().join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A fenced block: where it is, the words after the fence, and what it holds.
struct Block {
    place: String,
    kind: String,
    text: String,
}

fn blocks(document: &str) -> TestResult<Vec<Block>> {
    let text = fs::read_to_string(root().join(document))?;
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (line, number) in text.lines().zip(1..) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some(Block { place: format!("{document}:{number}"), kind: kind.to_owned(), text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err(format!("{}: this block never ends", block.place).into()),
        None => Ok(blocks),
    }
}

/// What the one block of this kind in the document holds.
pub fn only_block(document: &str, kind: &str) -> TestResult<String> {
    let found: Vec<Block> = blocks(document)?.into_iter().filter(|block| block.kind == kind).collect();
    match found.as_slice() {
        [block] => Ok(block.text.clone()),
        others => Err(format!("{document} has {} blocks {kind:?}, wanted is one", others.len()).into()),
    }
}

/// Every block of this kind, document by document.
fn all(kind: &str) -> TestResult<Vec<Block>> {
    let mut found = Vec::new();
    for document in documents()? {
        found.extend(blocks(&document)?.into_iter().filter(|block| block.kind == kind));
    }
    Ok(found)
}

/// What stands between `open` and `close`, again and again.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(inside, _)| inside)
}

/// A heading as a link names it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}

pub async fn every_link_leads_somewhere() -> TestResult {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents()? {
        let file = root().join(&document);
        for link in between(&fs::read_to_string(&file)?, "](", ')').filter(|link| !link.starts_with("https://")) {
            count += 1;
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.clone() } else { file.parent().unwrap_or(&file).join(path) };
            let has_heading = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line.trim_start_matches('#').trim()) == heading)
            };
            if !target.exists() || (!heading.is_empty() && !has_heading()) {
                wrong.push(format!("{document}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 0, "no document links to another");
    Ok(())
}

pub async fn everything_on_the_map_exists_and_every_package_is_on_it() -> TestResult {
    let text = fs::read_to_string(root().join("docs/architecture.md"))?;
    let map = text.split("\n## ").find(|part| part.starts_with("Map\n")).ok_or("docs/architecture.md has no part `Map`")?;
    let rows: Vec<&str> = map.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let missing: Vec<_> = rows.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "on the map, but not there: {missing:?}");

    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let members = between(&manifest, "members = [", ']').next().ok_or("no members in Cargo.toml")?;
    let members: Vec<String> = members.split('"').skip(1).step_by(2).map(packages).collect::<TestResult<Vec<_>>>()?.concat();
    assert!(!members.is_empty());
    let absent: Vec<_> = members.iter().filter(|member| !rows.contains(&format!("{member}/").as_str())).collect();
    assert!(absent.is_empty(), "packages that are not on the map: {absent:?}");
    Ok(())
}

/// The packages that a member of the workspace stands for: itself, or every folder where it ends in a star.
fn packages(member: &str) -> TestResult<Vec<String>> {
    let Some(folder) = member.strip_suffix("/*") else { return Ok(vec![member.to_owned()]) };
    let entries: Vec<fs::DirEntry> = fs::read_dir(root().join(folder))?.collect::<Result<_, _>>()?;
    let packages = entries.iter().filter(|entry| entry.path().join("Cargo.toml").exists());
    Ok(packages.map(|entry| format!("{folder}/{}", entry.file_name().to_string_lossy())).collect())
}

/// bash in the checkout's folder.
fn bash(arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("bash");
    command.args(arguments).current_dir(root());
    command
}

pub async fn every_command_is_written_so_that_it_can_run() -> TestResult {
    const KINDS: [&str; 5] = ["sh", "sh native", "sh by-hand", "json report", "text"];
    for document in documents()? {
        for block in blocks(&document)? {
            assert!(KINDS.contains(&block.kind.as_str()), "{}: {:?} is none of {KINDS:?}", block.place, block.kind);
            if !block.kind.starts_with("sh") {
                continue;
            }
            command::run(&mut bash(&["-n", "-c", &block.text])).await?.success().map_err(|error| format!("{}: {error}", block.place))?;
            for word in block.text.split_whitespace().filter(|word| word.starts_with("hack/")) {
                assert!(root().join(word).exists(), "{}: there is no {word}", block.place);
            }
            assert!(!block.text.contains("target/"), "{}: target/ may be elsewhere", block.place);
        }
    }
    Ok(())
}

async fn typed(block: &Block, labs: &Path) -> TestResult<Output> {
    let output = command::run(bash(&["-euo", "pipefail", "-c", &block.text]).env("VMI_LAB_HOME", labs)).await?;
    output.success().map_err(|error| format!("{}: {error}", block.place).into())
}

pub async fn what_is_to_be_typed_works() -> TestResult {
    let home = Home::new()?;
    let blocks = all("sh")?;
    assert!(!blocks.is_empty());
    for block in &blocks {
        typed(block, home.path()).await?;
    }
    assert!(home.processes()?.is_empty(), "the documents tell how to start a lab, but not how to end it");
    Ok(())
}

pub async fn what_is_to_be_typed_in_a_native_lab_works(_lab: &Lab) -> TestResult {
    let blocks = all("sh native")?;
    assert!(!blocks.is_empty());
    for block in &blocks {
        typed(block, &vmi_lab::home::folder()).await?;
    }
    Ok(())
}

/// Their commands take curl, which not every machine has; what they send is sent all the same.
pub async fn the_documented_faults_are_accepted(lab: &Lab) -> TestResult {
    let text = fs::read_to_string(root().join("docs/lab.md"))?;
    let mut sent = 0;
    for (path, body) in between(&text, "http://lab", '\n').filter_map(|rest| rest.split_once(" -d '")) {
        let body: Value = serde_json::from_str(body.trim_end_matches('\''))?;
        lab.control.post(path, &body).await?;
        sent += 1;
    }
    assert!(sent > 0, "docs/lab.md shows no fault");
    for vcenter in &lab.record.vcenters {
        lab.control.delete(&format!("/vcenters/{}/faults", vcenter.name)).await?;
    }
    Ok(())
}
