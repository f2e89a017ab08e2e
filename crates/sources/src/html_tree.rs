//! The tree of an HTML page, built by html5ever under a limit of nodes.
//!
//! A sink that forwards to [`RcDom`] and counts: the nodes that a parser creates are not bounded by the tags in the page,
//! since every paragraph reopens all formatting elements that were never closed.

use std::borrow::Cow;
use std::cell::Cell;

use html5ever::tendril::StrTendril;
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ExpandedName, QualName};
use markup5ever_rcdom::{Handle, RcDom};

/// A tree under construction.
#[derive(Default)]
pub(crate) struct Tree {
    dom: RcDom,
    nodes: Cell<u64>,
    attributes: Cell<u64>,
}

impl Tree {
    /// How many nodes were created, text nodes included.
    pub fn nodes(&self) -> u64 {
        self.nodes.get()
    }

    /// How many attributes all elements have together.
    pub fn attributes(&self) -> u64 {
        self.attributes.get()
    }

    /// The number of elements that are open: the last child of the last child, and so on.
    pub fn depth(&self) -> usize {
        let mut depth = 0;
        let mut node = self.dom.document.clone();
        loop {
            let Some(last) = node.children.borrow().last().cloned() else { return depth };
            node = last;
            depth += 1;
        }
    }

    fn count(&self) {
        self.nodes.set(self.nodes.get() + 1);
    }

    fn count_text(&self, child: &NodeOrText<Handle>) {
        if matches!(child, NodeOrText::AppendText(_)) {
            self.count();
        }
    }
}

impl TreeSink for Tree {
    type Handle = Handle;
    type Output = RcDom;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> RcDom {
        self.dom.finish()
    }

    /// Browsers also show pages with errors.
    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.dom.elem_name(target)
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.count();
        self.attributes.set(self.attributes.get() + attributes.len() as u64);
        self.dom.create_element(name, attributes, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.count();
        self.dom.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.count();
        self.dom.create_pi(target, data)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.count_text(&child);
        self.dom.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        self.count_text(&child);
        self.dom.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.count();
        self.dom.append_doctype_to_document(name, public_id, system_id);
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.dom.get_template_contents(target)
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        self.dom.same_node(x, y)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        self.count_text(&child);
        self.dom.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        self.dom.add_attrs_if_missing(target, attributes);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.dom.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Handle, parent: &Handle) {
        self.dom.reparent_children(node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }
}
