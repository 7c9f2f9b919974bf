//! Calls of methods: a type may have `impl` blocks in several modules of a crate, and a call of one
//! of its methods uses the module of that method without a path. The receiver must be `self`, or
//! have the name of the type, like `engine` and `self.engine` for `Engine`.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, ImplItemFn, Item, ItemImpl, Member, Type};

use super::paths::attributes;
use crate::tidy::modules::is_test_only;

/// The modules that define each method, by type and name, for types in more than one module.
pub(super) struct Homes(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Homes {
    /// Collects the methods of all files of a crate, each with its top-level module.
    pub(super) fn of<'a>(files: impl Iterator<Item = (&'a str, &'a syn::File)>) -> Self {
        let mut types: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (module, file) in files {
            for (of, name) in Methods::of(file).defined {
                types.entry(of).or_default().entry(name).or_default().insert(module.to_owned());
            }
        }
        types.retain(|_, methods| methods.values().flatten().collect::<BTreeSet<_>>().len() > 1);
        Self(types)
    }

    /// The modules whose methods a file calls, with the lines. A method that several modules define
    /// is left out.
    pub(super) fn called(&self, file: &syn::File) -> Vec<(&String, usize)> {
        let called = Methods::of(file).called.into_iter();
        called.filter_map(|call| Some((self.home(&call)?, call.line))).collect()
    }

    fn home(&self, call: &MethodCall) -> Option<&String> {
        let flat = call.receiver.replace('_', "");
        let mut types = self.0.iter().filter(|(of, _)| of.eq_ignore_ascii_case(&flat));
        let modules = types.next()?.1.get(&call.name)?;
        modules.first().filter(|_| modules.len() == 1)
    }
}

/// A call of a method. The receiver is the type for `self`, else the last name of the expression.
struct MethodCall {
    receiver: String,
    name: String,
    line: usize,
}

/// The methods that a file defines, each with its type, and those that it calls.
#[derive(Default)]
struct Methods {
    /// The type of the `impl` block that is being read.
    of: String,
    defined: Vec<(String, String)>,
    called: Vec<MethodCall>,
}

impl Methods {
    fn of(file: &syn::File) -> Self {
        let mut methods = Self::default();
        methods.visit_file(file);
        methods
    }

    fn receiver(&self, of: &Expr) -> Option<String> {
        match of {
            Expr::Path(path) if path.path.is_ident("self") => Some(self.of.clone()),
            Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
            Expr::Field(field) => match &field.member {
                Member::Named(name) => Some(name.to_string()),
                Member::Unnamed(_) => None,
            },
            Expr::MethodCall(call) => Some(call.method.to_string()),
            _ => None,
        }
    }
}

impl<'a> Visit<'a> for Methods {
    fn visit_item(&mut self, item: &'a Item) {
        if !is_test_only(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        let Type::Path(path) = &*item.self_ty else { return };
        self.of = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        visit::visit_item_impl(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        if !is_test_only(&function.attrs) {
            self.defined.push((self.of.clone(), function.sig.ident.to_string()));
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if let Some(receiver) = self.receiver(&call.receiver) {
            let (name, line) = (call.method.to_string(), call.method.span().start().line);
            self.called.push(MethodCall { receiver, name, line });
        }
        visit::visit_expr_method_call(self, call);
    }
}
