//! The graph of crates and the graphs of modules: no edge against the road, no cycle, and the drawing in ARCHITECTURE.md.
//!
//! A crate depends only on crates of earlier stages of [`ROAD`]. The modules of a folder form a graph: there is an edge
//! where one of them, or a module below it, names another one, or something that is re-exported from it. The folder's own
//! file (`lib.rs`, `mod.rs`) is above its children, which may use it. Tests do not count, nor do calls of methods, which
//! name no module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The stages of the road, first to last, without `certen-`.
const ROAD: &[&[&str]] = &[
    &["syntax", "math"],
    &["index"],
    &["core"],
    &["lang", "dialects"],
    &["figures", "guard"],
    &["lift", "derive"],
    &["loops"],
    &["teml"],
    &["schedule"],
    &["validate"],
    &["checker"],
    &["codegen"],
    &["runtime"],
    &["certen"],
    &["cli", "python"],
    &["testgen"],
];

/// Cycles that are still there, as the test reports them. It fails if one of them is gone, so that the list shrinks.
const KNOWN_CYCLES: &[&str] = &[];

const BEGIN: &str = "<!-- Written by crates/certen/tests/graph.rs: from here -->\n";
const END: &str = "<!-- to here -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn stage(name: &str) -> usize {
    let found = ROAD.iter().position(|stage| stage.contains(&name));
    found.unwrap_or_else(|| panic!("`certen-{name}` is not on the road: add it to ROAD"))
}

/// The crates in the order of the road, each with those that it depends on.
fn crates() -> Vec<(String, Vec<String>)> {
    let short = |name: &str| name.strip_prefix("certen-").unwrap_or(name).to_owned();
    let mut crates = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let mut section = "";
        let mut needs = Vec::new();
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            } else if section == "[dependencies]" && line.starts_with("certen") {
                needs.push(short(line.split(['.', ' ', '=']).next().unwrap()));
            }
        }
        needs.sort_by_key(|name| (stage(name), name.clone()));
        crates.push((short(path.file_name().unwrap().to_str().unwrap()), needs));
    }
    crates.sort_by_key(|(name, _)| (stage(name), name.clone()));
    crates
}

/// A module: where its text stands, and the text without comments, strings and tests.
struct Module {
    file: PathBuf,
    text: String,
    /// Names that it has from elsewhere: the path that each stands for.
    imports: BTreeMap<String, Vec<String>>,
}

/// The modules of a crate, by their paths.
type Modules = BTreeMap<Vec<String>, Module>;

/// An edge of a graph of modules, and the first line that has it.
type Edges = BTreeMap<(String, String), String>;

/// Blanks comments, strings and characters; lines stay lines.
fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    while at < bytes.len() {
        let rest = &text[at..];
        let raw = rest.strip_prefix('r').map(|rest| rest.len() - rest.trim_start_matches('#').len());
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw
            && rest[1 + hashes..].starts_with('"')
            && (at == 0 || !is_word(bytes[at - 1]))
        {
            let close = format!("\"{}", "#".repeat(hashes));
            2 + hashes + rest[2 + hashes..].find(&close).unwrap() + close.len()
        } else if rest.starts_with('"') {
            let mut end = 1;
            while bytes[at + end] != b'"' {
                end += if bytes[at + end] == b'\\' { 2 } else { 1 };
            }
            end + 1
        } else if rest.starts_with("'\\") {
            3 + rest[3..].find('\'').unwrap()
        } else if rest.starts_with('\'') && rest.chars().nth(2) == Some('\'') {
            2 + rest.chars().nth(1).unwrap().len_utf8()
        } else {
            out.push(bytes[at]);
            at += 1;
            continue;
        };
        out.extend(bytes[at..at + end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
        at += end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Blanks every item that is only for tests; the names of the modules among them.
fn without_tests(text: &mut String) -> Vec<String> {
    const MARK: &str = "#[cfg(test)]";
    let mut modules = Vec::new();
    while let Some(begin) = text.find(MARK) {
        let rest = &text[begin..];
        let after = &rest[MARK.len()..];
        if let Some(name) = after.trim_start().trim_start_matches("pub ").strip_prefix("mod ") {
            modules.push(name.split([';', ' ']).next().unwrap().to_owned());
        }
        // An item ends with its first block, or with a semicolon before it.
        let open = rest.find(['{', ';']).unwrap_or(rest.len() - 1);
        let mut depth = 0;
        let mut end = open + 1;
        if rest[open..].starts_with('{') {
            for (at, c) in rest[open..].char_indices() {
                depth += i32::from(c == '{') - i32::from(c == '}');
                if depth == 0 {
                    end = open + at + 1;
                    break;
                }
            }
        }
        let blank: String = rest[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        text.replace_range(begin..begin + end, &blank);
    }
    modules
}

/// The paths of a use tree such as `a::{b, c::D as E}`, each with the name that it gives, and where the tree ends.
fn tree(text: &str, prefix: &[String], out: &mut Vec<(Vec<String>, String)>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = 0;
    let space = |at: usize| at + text[at..].len() - text[at..].trim_start().len();
    loop {
        at = space(at);
        if text[at..].starts_with('{') {
            at += 1;
            while !text[space(at)..].starts_with('}') {
                at = space(at);
                at += tree(&text[at..], &path, out);
                at = space(at);
                if text[at..].starts_with(',') {
                    at += 1;
                } else if !text[at..].starts_with('}') {
                    return at;
                }
            }
            return space(at) + 1;
        }
        let length = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - at);
        if length == 0 {
            out.push((path.clone(), String::new()));
            return at + usize::from(text[at..].starts_with('*'));
        }
        path.push(text[at..at + length].to_owned());
        at += length;
        if text[at..].starts_with("::") {
            at += 2;
            continue;
        }
        let mut name = path.last().cloned().unwrap();
        if let Some(alias) = text[at..].strip_prefix(" as ") {
            name = alias.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
            at += 4 + name.len();
        }
        out.push((path, name));
        return at;
    }
}

/// The paths of a text that begin in its crate, with their lines.
fn paths(text: &str) -> Vec<(Vec<String>, usize)> {
    let mut paths = Vec::new();
    for (at, _) in text.match_indices("::") {
        let before = text[..at].rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |end| end + 1);
        if matches!(&text[before..at], "crate" | "super" | "self") && !text[..before].ends_with("::") {
            let mut found = Vec::new();
            tree(&text[before..], &[], &mut found);
            let line = text[..before].matches('\n').count() + 1;
            paths.extend(found.into_iter().map(|(path, _)| (path, line)));
        }
    }
    paths
}

/// What each `use` of a text imports, and the name that it gives to it.
fn imports(text: &str) -> Vec<(Vec<String>, String)> {
    let mut imports = Vec::new();
    for (at, _) in text.match_indices("use ") {
        if at == 0 || text[..at].ends_with(['\n', ' ', ')']) {
            tree(&text[at + 4..], &[], &mut imports);
        }
    }
    imports
}

/// Reads a module and those below it.
fn read(file: &Path, folder: &Path, path: &[String], modules: &mut Modules) {
    let mut text = blanked(&fs::read_to_string(file).unwrap());
    let tests = without_tests(&mut text);
    let imports = imports(&text).into_iter().map(|(path, name)| (name, path)).collect();
    modules.insert(path.to_vec(), Module { file: file.to_owned(), text, imports });
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let below = folder.join(&name);
        let module = if entry.is_dir() { entry.join("mod.rs") } else { entry.clone() };
        let is_module = module.extension().is_some_and(|extension| extension == "rs") && module.exists();
        if is_module && !matches!(name.as_str(), "lib" | "main" | "mod" | "tests") && !tests.contains(&name) {
            read(&module, &below, &[path, &[name]].concat(), modules);
        }
    }
}

fn modules(name: &str) -> Modules {
    let folder = if name == "certen" { name.to_owned() } else { format!("certen-{name}") };
    let source = root().join("crates").join(folder).join("src");
    let file = ["lib.rs", "main.rs"].map(|file| source.join(file)).into_iter().find(|file| file.exists()).unwrap();
    let mut modules = Modules::new();
    read(&file, &source, &[], &mut modules);
    modules
}

/// The module that a path leads to, from the module that has it.
fn resolved(modules: &Modules, from: &[String], path: &[String], depth: usize) -> Vec<String> {
    let mut at = from.to_vec();
    for (position, segment) in path.iter().enumerate() {
        match segment.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop();
            }
            _ => {
                let child = [at.as_slice(), std::slice::from_ref(segment)].concat();
                if modules.contains_key(&child) {
                    at = child;
                    continue;
                }
                let import =
                    modules[&at].imports.get(segment).filter(|import| depth < 8 && *import != &path[position..]);
                return import.map_or(at.clone(), |import| {
                    let is_inside = matches!(import[0].as_str(), "crate" | "super" | "self")
                        || modules.contains_key(&[at.as_slice(), &import[..1]].concat());
                    if is_inside { resolved(modules, &at, import, depth + 1) } else { at.clone() }
                });
            }
        }
    }
    at
}

/// The graph of each folder, by its path.
fn graphs(modules: &Modules) -> BTreeMap<String, Edges> {
    let mut graphs: BTreeMap<String, Edges> = BTreeMap::new();
    for (from, module) in modules {
        for (path, line) in paths(&module.text) {
            let to = resolved(modules, from, &path, 0);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                let file = module.file.strip_prefix(root()).unwrap().display().to_string();
                let edges = graphs.entry(from[..common].join("/")).or_default();
                edges.entry((a.clone(), b.clone())).or_insert_with(|| format!("{file}:{line}"));
            }
        }
    }
    graphs
}

/// The layers of a graph, those that use nothing first; and what is left over, which has a cycle.
fn layers(nodes: &BTreeSet<String>, edges: &Edges) -> (Vec<Vec<String>>, BTreeSet<String>) {
    let (mut left, mut layers) = (nodes.clone(), Vec::new());
    loop {
        let uses = |node: &String| edges.keys().any(|(from, to)| from == node && left.contains(to));
        let layer: Vec<String> = left.iter().filter(|node| !uses(node)).cloned().collect();
        if layer.is_empty() {
            return (layers, left);
        }
        left.retain(|node| !layer.contains(node));
        layers.push(layer);
    }
}

/// The cycles of a graph: sets of modules that all lead to each other.
fn cycles(edges: &Edges) -> BTreeSet<BTreeSet<&String>> {
    let mut reach: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    edges.keys().for_each(|(from, to)| _ = reach.entry(from).or_default().insert(to));
    loop {
        let further = |to: &&String| reach.get(to).into_iter().flatten().copied().collect::<Vec<_>>();
        let more: BTreeMap<&String, BTreeSet<&String>> = reach
            .iter()
            .map(|(from, near)| (*from, near.iter().copied().chain(near.iter().flat_map(further)).collect()))
            .collect();
        if more == reach {
            break;
        }
        reach = more;
    }
    let leads = |from: &String, to: &String| reach.get(from).is_some_and(|reached| reached.contains(to));
    let with =
        |node: &&String| reach.keys().copied().filter(|other| leads(node, other) && leads(other, node)).collect();
    reach.keys().filter(|node| leads(node, node)).map(with).collect()
}

#[test]
fn crates_depend_only_on_earlier_stages() {
    for (name, needs) in crates() {
        for need in needs {
            assert!(stage(&need) < stage(&name), "`{name}` depends on `{need}`, which comes later on the road");
        }
    }
}

#[test]
fn modules_form_no_cycle() {
    let mut found = BTreeSet::new();
    let mut report = String::new();
    for (name, _) in crates() {
        for (folder, edges) in graphs(&modules(&name)) {
            for cycle in cycles(&edges) {
                let members = cycle.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
                let title = format!("{}: {members}", [name.as_str(), &folder].join("/").trim_end_matches('/'));
                if !KNOWN_CYCLES.contains(&title.as_str()) {
                    report += &format!("a cycle in {title}\n");
                    for ((from, to), line) in edges.iter().filter(|((a, b), _)| cycle.contains(a) && cycle.contains(b))
                    {
                        report += &format!("    {from} -> {to} ({line})\n");
                    }
                }
                found.insert(title);
            }
        }
    }
    for known in KNOWN_CYCLES.iter().filter(|known| !found.contains(**known)) {
        report += &format!("no longer a cycle, or another one: remove it from KNOWN_CYCLES: {known}\n");
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn architecture_has_the_drawing() {
    let mut drawing = "```text\n".to_owned();
    for (name, needs) in crates() {
        drawing += &format!("{name} -> {}\n", needs.join(", ")).replace(" -> \n", "\n");
    }
    drawing += "```\n\nModules, those that use no other first; `<` means \"is used by\", and `a/b` is the inside of a folder:\n\n";
    drawing += "```text\n";
    for (name, _) in crates() {
        let modules = modules(&name);
        let graphs = graphs(&modules);
        let folders: BTreeSet<Vec<String>> =
            modules.keys().filter_map(|path| Some(path.split_last()?.1.to_vec())).collect();
        for folder in folders {
            let nodes: BTreeSet<String> = modules
                .keys()
                .filter_map(|path| {
                    path.split_last().filter(|(_, above)| **above == folder).map(|(name, _)| name.clone())
                })
                .collect();
            let none = Edges::new();
            let (layers, left) = layers(&nodes, graphs.get(&folder.join("/")).unwrap_or(&none));
            if layers.len() + left.len() < 2 && !folder.is_empty() {
                continue;
            }
            let mut shown: Vec<String> = layers.iter().map(|layer| layer.join(" ")).collect();
            shown.extend((!left.is_empty()).then(|| format!("({})", left.into_iter().collect::<Vec<_>>().join(" "))));
            let title = [name.as_str(), &folder.join("/")].join("/");
            drawing += &format!("{}: {}\n", title.trim_end_matches('/'), shown.join(" < "));
        }
    }
    drawing += "```\n";
    let path = root().join("ARCHITECTURE.md");
    let written = fs::read_to_string(&path).unwrap();
    let (before, rest) = written.split_once(BEGIN).expect("ARCHITECTURE.md has the first mark");
    let (_, after) = rest.split_once(END).expect("ARCHITECTURE.md has the second mark");
    let found = format!("{before}{BEGIN}\n{drawing}\n{END}{after}");
    if std::env::var_os("CERTEN_BLESS").is_some() {
        fs::write(&path, &found).unwrap();
    } else {
        assert!(written == found, "the graphs in ARCHITECTURE.md are not of today: run `cargo xtask bless`");
    }
}
